import Foundation
import Testing

@testable import PluginFile
@testable import TestSupport

@Suite struct FileWindowTests {
    @Test func `Only the blocks that are asked for are read`() throws {
        let file = try OpenFile([UInt8](repeating: 7, count: 20_000))
        let window = try FileWindow(file.descriptor, size: 20_000, path: "x")
        window.require(4095, 2)
        #expect(window.bytesRead == 8192)
        window.require(0, 8192)
        #expect(window.bytesRead == 8192)
        window.require(19_999, 1)
        #expect(window.bytesRead == 8192 + 20_000 - 16_384)
        window.require(5000, .max)
        #expect(window.bytesRead == 20_000)
        #expect(window.bytes.allSatisfy { $0 == 7 })
    }

    @Test(arguments: [12_288, 9 << 20])
    func `A window never shows bytes of a file that was read before`(size: Int) throws {
        let old = try OpenFile([UInt8](repeating: 1, count: size))
        // More windows than pieces of memory are kept.
        for _ in 0..<2 {
            let windows = try (0..<4).map { _ in try FileWindow(old.descriptor, size: size, path: "x") }
            for window in windows { window.require(0, UInt64(size)) }
        }
        // The file was truncated after its size was read.
        let short = try OpenFile([UInt8](repeating: 2, count: 5000))
        let windows = try (0..<4).map { _ in try FileWindow(short.descriptor, size: size, path: "x") }
        for window in windows {
            window.require(0, UInt64(size))
            #expect(window.bytes[..<5000].allSatisfy { $0 == 2 } && window.bytes[5000...].allSatisfy { $0 == 0 })
            #expect(window.bytesRead == 5000 && window.failure == 0)
        }
    }

    @Test func `A read that fails in the middle leaves its reason, and zeros`() throws {
        // Two pages of this process, after which nothing is mapped.
        let page = Int(getpagesize())
        let hint = UnsafeMutableRawPointer(bitPattern: 1 << 21)
        let flags = MAP_PRIVATE | MAP_ANONYMOUS
        let pages = try #require(mmap(hint, 3 * page, PROT_READ | PROT_WRITE, flags, -1, 0))
        try #require(pages == hint && munmap(pages + 2 * page, page) == 0)
        defer { munmap(pages, 2 * page) }
        memset(pages, 7, 2 * page)
        let memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC)
        defer { close(memory) }
        let start = Int(bitPattern: pages)
        let window = try FileWindow(memory, size: start + 3 * page, path: "x")
        window.require(UInt64(start), UInt64(2 * page))
        #expect(window.failure == 0)
        window.require(UInt64(start), UInt64(3 * page))
        #expect(window.failure == EIO && window.bytesRead == 2 * page)
        #expect(window.bytes[start..<start + 2 * page].allSatisfy { $0 == 7 })
        #expect(window.bytes[(start + 2 * page)...].allSatisfy { $0 == 0 })
    }

    @Test func `Windows that are used at the same time have memory of their own`() throws {
        let files = try (0..<6).map { number in try OpenFile([UInt8](repeating: UInt8(number), count: 9000)) }
        let windows = try files.map { try FileWindow($0.descriptor, size: 9000, path: "x") }
        for window in windows { window.require(0, 9000) }
        for (number, window) in windows.enumerated() { #expect(window.bytes.allSatisfy { $0 == UInt8(number) }) }
    }

    @Test func `An image is the same through a window whose memory held another file`() throws {
        // Enough symbols and relocations for tables of several blocks.
        let functions = (0..<600).map { "int f\($0)(void) { return \($0); }" }.joined(separator: "\n")
        let addresses = (0..<600).map { "f\($0)" }.joined(separator: ", ")
        let path = try CFixture.build(
            "\(CFixture.entry)\n\(functions)\nint (*all[])(void) = {\(addresses)};",
            ["-Wl,-soname,libfacts.so.1", "-Wl,--hash-style=both", "-Wl,--build-id", "-lc"])
        let good = try [UInt8](Data(contentsOf: URL(fileURLWithPath: path)))
        let other = try OpenFile([UInt8](repeating: 0xFF, count: good.count))
        var refusals = 0
        for number in 0..<300 {
            // The file itself, and damaged copies of it.
            var bytes = good
            if number > 0 { bytes[(number * 7919) % min(bytes.count, 60_000)] ^= UInt8(truncatingIfNeeded: number | 1) }
            do {
                let windows = try (0..<2).map { _ in
                    try FileWindow(other.descriptor, size: bytes.count, path: "x")
                }
                for window in windows { window.require(0, UInt64(bytes.count)) }
            }
            let file = try OpenFile(bytes)
            let window = try FileWindow(file.descriptor, size: bytes.count, path: "x")
            let inMemory = outcome { try bytes.withUnsafeBytes { try ELFImage(reading: $0, path: "x") } }
            #expect(outcome { try ELFImage(reading: ELFBytes(window, path: "x")) } == inMemory)
            if inMemory.hasPrefix("refused") { refusals += 1 } else { #expect(inMemory.contains("libfacts")) }
        }
        #expect(refusals > 20 && refusals < 299)
    }

    private func outcome(_ read: () throws -> ELFImage) -> String {
        do { return String(describing: try read()) } catch { return "refused: \(error)" }
    }
}

/// A file without a name.
private final class OpenFile {
    let descriptor: Int32

    init(_ bytes: [UInt8]) throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/file"
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        try #require(descriptor >= 0)
    }

    deinit { close(descriptor) }
}
