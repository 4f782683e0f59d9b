import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// A folder with many files, of which some end or block the process that opens them.
@Suite(.timeLimit(.minutes(30)), .disabled(if: isSanitized || modulesAreIsolated))
struct ManyBadFilesTests {
    private let folder: TemporaryFolder
    private let plugins: String
    /// The file in which modules note that they were opened.
    private let notes: String

    init() throws {
        folder = try TemporaryFolder()
        plugins = try folder.folder("plugins")
        notes = "\(folder.path)/notes"
    }

    private static func name(_ kind: String, _ number: Int) -> String { "\(kind)\(String(1000 + number).dropFirst())" }

    /// Puts copies of a module, each with a name of its own, into the folder.
    private func put(_ kind: String, _ count: Int, constructor: String = "") throws {
        let code = "__attribute__((constructor)) static void begin(void) { \(constructor) }"
        let entry = "note(\"\(notes)\", \"\(kind) \");"
        let module = try Data(
            contentsOf: URL(filePath: CModule(name: "\(kind)000", code: code, entry: entry).build()))
        for number in 0..<count {
            let name = Self.name(kind, number)
            var copy = module
            while number > 0, let place = copy.range(of: Data("\(kind)000".utf8)) {
                copy.replaceSubrange(place, with: Data(name.utf8))
            }
            try copy.write(to: URL(filePath: "\(plugins)/\(name).so"))
        }
    }

    /// How often code of the modules of each kind has begun to run.
    private var openings: [String: Int] {
        let text = (try? String(contentsOfFile: notes, encoding: .utf8)) ?? ""
        return text.split(separator: " ").reduce(into: [:]) { $0[String($1), default: 0] += 1 }
    }

    private func start() throws -> TestHost {
        let host = try TestHost { configuration, _ in
            configuration.folders = [plugins]
            configuration.start = .lazy
            configuration.watches = false
            configuration.registryCache = "\(folder.path)/cache"
            configuration.safeScan = true
            configuration.scanTimeout = .seconds(4)
            configuration.isolation.workerPath = built("pluginhost-worker")
        }
        try host.start()
        return host
    }

    @Test func `Of 300 files, those that crash and hang are named, and the next start opens none`() throws {
        try put("Good", 277)
        try put("Crash", 20, constructor: "note(\"\(notes)\", \"crash \"); abort();")
        try put("Hang", 3, constructor: "note(\"\(notes)\", \"hang \"); for (;;) pause();")
        usleep(30_000)  // A file that has just changed is not recorded.
        let first = try start()
        let failures = first.host.modules.filter { $0.error != nil }
        for (kind, code, count) in [("Crash", PluginError.Code.moduleCrashed, 20), ("Hang", .deadlineExceeded, 3)] {
            let named = failures.filter { $0.error?.code == code }.map { ($0.file as NSString).lastPathComponent }
            #expect(named.sorted() == (0..<count).map { "\(Self.name(kind, $0)).so" })
        }
        #expect(failures.count == 23)
        // At most once with others, for a quarter of the time limit, and once alone: together less than three time
        // limits if two processes run at a time.
        #expect(openings["hang", default: 0] <= 6)
        #expect(openings["crash", default: 0] <= 40)
        #expect(first.answer("Good276") == "yes")
        first.host.shutdown()

        let before = openings
        let second = try start()
        #expect(openings == before)
        #expect(second.states.values.count { $0 == "registered" } == 277)
        #expect(second.states.values.count { $0 == "failed" } == 23)
        #expect(second.answer("Good000") == "yes")
    }
}
