import CDispatch
import Foundation
import Glibc
import PluginABI
import PluginHost
import Work

/// Work that a process can do only once, because nothing that it has opened goes away. It is done in a process of its
/// own, which prints the time in nanoseconds and the memory that it took in bytes.
enum Once: String {
    /// Starts a host on a folder.
    case host
    /// Ends such a host.
    case end
    /// Starts a host on a folder whose modules an earlier one has read. The first time, it reads them.
    case known
    /// Calls the first module of such a folder for the first time.
    case firstCall
    /// Copies the files of a folder and opens the copies: the floor of a start.
    case copyAndOpen
    /// Opens the files in place: the memory that modules cost without a host.
    case open
    /// Opens the files, gets each module's description, and activates it with a host that does nothing: the cost of a
    /// module to any host.
    case activate
    /// Calls `lstat` on every file of a folder.
    case stat

    struct Outcome {
        let time: Double
        let memory: Double
    }

    /// Does the work in a process of its own.
    func apart(_ folder: String) throws -> Outcome {
        let text = try Program.run(["once", rawValue, folder])
        let numbers = text.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
        guard numbers.count == 2 else { throw Failure("The process for “\(rawValue)” printed: \(text)") }
        return Outcome(time: numbers[0], memory: numbers[1])
    }

    /// Does the work in this process.
    func run(_ folder: String) throws {
        let temporary = TemporaryFolder()
        let files = try FileManager.default.contentsOfDirectory(atPath: folder).sorted().map { "\(folder)/\($0)" }
        let copies = temporary.folder("copies")
        let before = Self.ownBytes
        var start = now()
        var host: PluginHost?
        switch self {
        case .host: host = try PluginHost.bench(folder: folder, in: temporary)
        case .end:
            host = try PluginHost.bench(folder: folder, in: temporary)
            start = now()
            host?.shutdown()
        case .known: host = try PluginHost.started(folder: folder, in: temporary, cache: "\(folder).cache")
        case .firstCall:
            let known = try PluginHost.bench(folder: folder, in: temporary, cache: "\(folder).cache")
            guard let module = known.modules.first, module.state == .registered, let name = module.name else {
                throw Failure("The module in \(folder) is not known.")
            }
            start = now()
            keep(try known.perform(name, name == "Plain" ? "one" : "number", ["n": 1]).int ?? 0)
            host = known
        case .copyAndOpen:
            for (number, file) in files.enumerated() {
                let copy = "\(copies)/\(number).so"
                try Self.copy(file, to: copy)
                Self.open(copy)
            }
        case .open: for file in files { Self.open(file) }
        case .activate:
            for file in files { Self.open(file) }  // All files are opened first, as a host does.
            for file in files { Opened.activate(file) }
        case .stat:
            for file in files {
                var information = Glibc.stat()
                guard lstat(file, &information) == 0 else { throw Failure("\(file) cannot be looked at.") }
            }
        }
        let time = now() - start
        if self == .known { try host?.requireAll([.active, .registered]) }
        print(time, Double(Self.ownBytes - before))
        host?.shutdown()
    }

    private static func open(_ file: String) {
        typealias Entry = @convention(c) () -> UnsafePointer<plugin_module>
        _ = Opened.function("plugin_module_entry", in: file, as: Entry.self)
    }

    /// Copies a file in the kernel, which need not bring the bytes into the process.
    private static func copy(_ file: String, to copy: String) throws {
        let (source, target) = (Glibc.open(file, O_RDONLY), Glibc.open(copy, O_WRONLY | O_CREAT | O_EXCL, 0o700))
        defer {
            close(source)
            close(target)
        }
        var information = Glibc.stat()
        guard source >= 0, target >= 0, fstat(source, &information) == 0 else { throw Failure("\(file): no copy.") }
        var rest = Int(information.st_size)
        while rest > 0 {
            let count = sendfile(target, source, nil, rest)
            guard count > 0 else { throw Failure("\(file) cannot be copied.") }
            rest -= count
        }
    }

    /// The anonymous memory of this process, in bytes: heap, stacks, and pages of libraries that were written to.
    /// Unchanged pages of files do not count: the kernel drops them when it needs the memory.
    private static var ownBytes: Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
        return (line?.split(whereSeparator: \.isWhitespace).dropFirst().first).flatMap { Int($0) }.map { $0 * 1024 }
            ?? 0
    }
}
