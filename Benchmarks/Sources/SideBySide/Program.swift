import Dispatch
import Foundation
import Work

/// Programs that this one starts: itself, again, and the tools that it needs. None of them outlives it.
enum Program {
    /// - Returns: What the program printed.
    static func run(_ arguments: [String], program: String = "/proc/self/exe") throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program).resolvingSymlinksInPath()
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging([startedByUs: "1"]) { $1 }
        let (input, output) = (Pipe(), Pipe())
        (process.standardInput, process.standardOutput) = (input, output)
        try process.run()
        // The other end closes when this process ends, however it ends.
        defer { try? input.fileHandleForWriting.close() }
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationReason == .exit, process.terminationStatus == 0 else {
            throw Failure(
                "\(process.executableURL!.lastPathComponent) \(arguments.joined(separator: " ")) "
                    + "ended with \(process.terminationStatus).")
        }
        return String(decoding: data, as: UTF8.self)
    }

    /// Has the kernel place the memory of all programs that are started from now on as it always does without
    /// randomization, so that figures can be compared. Returns false if the system does not allow it.
    static func fixPlacement() -> Bool {
        guard let function = dlsym(nil, "personality") else { return false }
        let personality = unsafeBitCast(function, to: (@convention(c) (UInt) -> Int32).self)
        let present = personality(0xFFFF_FFFF)
        return present >= 0 && personality(UInt(present) | 0x0004_0000) >= 0  // ADDR_NO_RANDOMIZE
    }

    private static let startedByUs = "SIDEBYSIDE_PARENT"

    /// Ends this process, and removes what it has made, on a signal, or when the process that started it has ended.
    static func endInTime() {
        for number in [SIGINT, SIGTERM, SIGHUP] {
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { end(128 + number) }
            source.activate()
            sources.append(source)
        }
        guard ProcessInfo.processInfo.environment[startedByUs] != nil else { return }
        Thread.detachNewThread {
            var byte: UInt8 = 0
            while read(STDIN_FILENO, &byte, 1) > 0 {}
            end(1)
        }
    }

    nonisolated(unsafe) private static var sources: [any DispatchSourceSignal] = []  // Set at the start, on one thread.

    private static func end(_ code: Int32) -> Never {
        TemporaryFolder.removeAll()
        _exit(code)
    }
}
