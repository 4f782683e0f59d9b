import Foundation

/// A host with the isolated module `Busy`, which threads of another module call without pause. They also call two other
/// modules: `Victim01` in the process of the host, and `Victim02` in a worker.
final class Traffic {
    typealias Word = TrafficModules.Word

    let host: Program.Running
    private let folder: Folder
    private let modules: TrafficModules
    private let plugins: String
    private let memory: String
    private let words: UnsafeMutablePointer<Int>

    /// Starts the host, and waits until all modules are called.
    ///
    /// - Parameters:
    ///   - version: The first version of `Busy`, see ``TrafficModules/busy(version:memory:)``.
    ///   - crashes: Whether calls of `Busy` may end with `moduleCrashed`.
    init(
        _ program: Program, _ victims: Victims, _ modules: TrafficModules, in folder: Folder, version: Int,
        crashes: Bool
    ) throws {
        (self.folder, self.modules) = (folder, modules)
        plugins = try folder.folder("plugins")
        memory = try folder.folder("shared") + "/memory"
        words = try Self.map(memory)
        words[Word.crashes.rawValue] = crashes ? 1 : 0
        let rules = """
            {"isolation": [{"module": "Victim02"}, {"module": "Busy", "files": {"write": ["\(folder.path)/shared"]}}]}
            """
        try put(Array(rules.utf8), at: "\(folder.path)/configuration.json")
        for number in 1...2 { try put(victims.module(number), at: "\(plugins)/\(number).so") }
        try put(modules.busy(version: version, memory: memory), at: "\(plugins)/busy.so")
        try put(modules.caller(memory: memory), at: "\(plugins)/caller.so")
        host = try program.start(
            ["run", "--plugins", plugins, "--config", "\(folder.path)/configuration.json"], in: folder)
        try waitForService(of: version)
        try wait("the other modules are not called") { self[.others] > 0 }
    }

    deinit { munmap(words, TrafficModules.words * 8) }

    private static func map(_ path: String) throws -> UnsafeMutablePointer<Int> {
        let size = TrafficModules.words * 8
        let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0, ftruncate(file, size) == 0,
            let memory = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), memory != MAP_FAILED
        else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
        close(file)
        return memory.assumingMemoryBound(to: Int.self)
    }

    subscript(word: Word) -> Int {
        get { words[word.rawValue] }
        set { words[word.rawValue] = newValue }
    }

    /// Returns a count for each caller.
    func counts(_ what: TrafficModules.OfCaller) -> [Int] {
        (0..<TrafficModules.callers).map {
            words[Word.callers.rawValue + $0 * TrafficModules.OfCaller.count.rawValue + what.rawValue]
        }
    }

    /// The number of calls of `Busy` that have ended.
    var calls: Int { counts(.calls).reduce(0, +) }

    /// The times from the end of a worker to the errors of its calls, in milliseconds.
    var delays: [Double] {
        let start = Word.delays.rawValue
        return (0..<min(self[.delayed], TrafficModules.words - start)).map { Double(words[start + $0]) / 1e6 }
    }

    // MARK: What happens

    /// Replaces `Busy`.
    func replace(by version: Int) throws {
        try put(modules.busy(version: version, memory: memory), at: "\(plugins)/busy.so")
    }

    func waitForService(of version: Int) throws {
        try wait("the version \(version) of Busy does not serve") { self[.version] == version }
    }

    /// Waits until each caller has completed a call that it began after this moment.
    func waitForCallers() throws {
        let before = counts(.calls)
        try wait("a call does not end") { zip(before, counts(.calls)).allSatisfy { $0 + 1 < $1 } }
    }

    /// Waits for at most half a minute.
    func wait(_ otherwise: String, _ holds: () throws -> Bool) throws {
        let end = ContinuousClock.now + .seconds(30)
        while try !holds() {
            try check()
            guard ContinuousClock.now < end else { throw Finding(message: otherwise) }
            usleep(500)
        }
        try check()
    }

    private func check() throws {
        guard self[.wrong] == 0 else {
            let text = String(cString: UnsafeRawPointer(words + Word.text.rawValue).assumingMemoryBound(to: CChar.self))
            throw Finding(message: "\(self[.wrong]) wrong outcomes; \(text)")
        }
        guard host.isRunning else { throw Finding(message: "the host \(host.wait(seconds: 0).description)") }
    }

    // MARK: The end

    /// Ends the callers, so that no more calls are made.
    func calm() throws {
        self[.isOver] = 1
        try wait("a call does not end") { self[.running] == 0 }
        try check()
    }

    /// Ends the host, and checks that it and all its processes end.
    func end() throws {
        host.signal(SIGTERM)
        guard eventually(within: 20, { !host.isRunning }) else {
            throw Finding(message: "SIGTERM does not end the host")
        }
        try requireEnd(of: folder)
        let outcome = host.wait(seconds: 1)
        guard outcome.signal == 0, outcome.code == 0 else {
            throw Finding(message: "after SIGTERM the host \(outcome.description)")
        }
    }
}
