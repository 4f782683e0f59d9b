import CDispatch
import Foundation
import Glibc
import PluginABI
import PluginHost
import Work

/// What can be done once in a process only, because nothing that was opened goes away: done in a process of its own,
/// which prints the time in nanoseconds and the memory that it took, in bytes.
enum Once: String {
    /// Starts a host on a folder.
    case host
    /// Ends such a host.
    case end
    /// Starts a host on a folder whose modules an earlier one has read. The first time, it reads them.
    case known
    /// Calls the first module of such a folder for the first time.
    case firstCall
    /// Copies the files of a folder and opens the copies: the floor of it.
    case copyAndOpen
    /// Opens the files where they lie: the memory that modules cost without a host.
    case open
    /// Opens them, asks each what it is, and gives it a host that does nothing: what they cost whoever uses them.
    case activate
    /// Looks at every file of a folder.
    case stat

    struct Outcome {
        let time: Double
        let memory: Double
    }

    /// In a process of its own.
    func apart(_ folder: String) throws -> Outcome {
        let text = try Program.run(["once", rawValue, folder])
        let numbers = text.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
        guard numbers.count == 2 else { throw Failure("The process for “\(rawValue)” printed: \(text)") }
        return Outcome(time: numbers[0], memory: numbers[1])
    }

    /// In this process.
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
        case .known: host = try PluginHost.bench(folder: folder, in: temporary, cache: "\(folder).cache")
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
            for file in files { Self.open(file) }  // All of them first, as a host does.
            for file in files { Opened.activate(file) }
        case .stat:
            for file in files {
                var information = Glibc.stat()
                guard lstat(file, &information) == 0 else { throw Failure("\(file) cannot be looked at.") }
            }
        }
        let time = now() - start
        print(time, Double(Self.ownBytes - before))
        host?.shutdown()
    }

    private static func open(_ file: String) {
        typealias Entry = @convention(c) () -> UnsafePointer<plugin_module>
        _ = Opened.function("plugin_module_entry", in: file, as: Entry.self)
    }

    /// The way of the kernel, which need not bring the bytes into the process.
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

    /// Anonymous memory: heap, stacks, and pages of libraries that were written to. Not what is in memory of files and
    /// as it is in them, which the kernel drops when it needs the memory.
    private static var ownBytes: Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
        return (line?.split(whereSeparator: \.isWhitespace).dropFirst().first).flatMap { Int($0) }.map { $0 * 1024 }
            ?? 0
    }
}
