import Foundation
import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

/// The deadlines of a host as options, in the configuration file and in the article.
@Suite struct DeadlineTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func configuration(_ words: [String]) throws -> PluginHost.Configuration {
        try ArgumentParser(command: Run.specification).parse(words).configuration(environment: [:]) { _ in }
    }

    private static func durations(_ configuration: PluginHost.Configuration) -> [String: Duration] {
        var durations = [
            "hookPatience": configuration.hookPatience, "hookTimeout": configuration.hookTimeout,
            "scanTimeout": configuration.scanTimeout,
            "asyncTimeout": configuration.asyncTimeout, "shutdownTimeout": configuration.shutdownTimeout,
            "handOverTimeout": configuration.handOverTimeout, "drainTimeout": configuration.drainTimeout,
            "callTimeout": configuration.isolation.callTimeout, "hangGrace": configuration.isolation.hangGrace,
            "stableTime": configuration.isolation.stableTime,
        ]
        durations["objectTimeout"] = configuration.objectTimeout
        return durations
    }

    private let deadlines = Deadline.entries.filter { $0.form == .positive }

    @Test func `each deadline has an option and a number in the configuration file, and the option wins`() throws {
        let numbers = deadlines.enumerated().map { "\"\($1.name)\": \(100 + $0)" }.joined(separator: ", ")
        let file = try folder.file("c.json", "{\(numbers), \"ModuleA\": {}}")
        let fromFile = try Self.durations(configuration(["--config", file]))
        #expect(fromFile.count == deadlines.count)
        for (number, deadline) in deadlines.enumerated() {
            #expect(fromFile[deadline.name] == .seconds(100 + number), "\(deadline.name)")
            let given = try Self.durations(configuration(["--config", file, deadline.option.name, "7.5"]))
            #expect(given[deadline.name] == .milliseconds(7500), "\(deadline.name)")
        }
        #expect(try configuration(["--config", file]).moduleConfiguration == ["ModuleA": [:]])
    }

    @Test func `a deadline that is not positive is an error, and a module may have its name`() throws {
        for text in ["0", "-1", "\"long\"", "null"] {
            let file = try folder.file("c.json", "{\"hookTimeout\": \(text)}")
            let error = #expect(throws: PluginError.self) { try configuration(["--config", file]) }
            #expect(error?.message.contains("hookTimeout is \(text); it must be a positive number of seconds") == true)
        }
        let file = try folder.file("c.json", "{\"hookTimeout\": {\"a\": 1}}")
        #expect(try configuration(["--config", file]).moduleConfiguration == ["hookTimeout": ["a": 1]])
        #expect(throws: PluginError(.usage, "The value 'x' of '--hang-grace' is not a positive number of seconds.")) {
            try configuration(["--hang-grace", "x"])
        }
    }

    @Test func `quiet time and pauses of restarts have an option and an entry in the configuration file`() throws {
        let file = try folder.file("c.json", #"{"quietTime": 0.05, "restartPauses": [0, 0.5, 3]}"#)
        func times(_ words: String...) throws -> (Duration, [Duration]) {
            let configuration = try configuration(["--config", file] + words)
            return (configuration.quietTime, configuration.isolation.restartPauses)
        }
        #expect(try times() == (.milliseconds(50), [.zero, .milliseconds(500), .seconds(3)]))
        #expect(
            try times("--quiet-time", "0", "--restart-pauses", "0.25,0") == (.zero, [.milliseconds(250), .zero]))
        #expect(try times("--quiet-time", "0.1", "--restart-pauses", "none") == (.milliseconds(100), []))
        for (option, value, expected) in [
            ("--quiet-time", "0.2", "a number of seconds from 0 to 0.1."),
            ("--restart-pauses", "1,", "a list of up to 100 numbers of seconds, as in '0,0.5,10'; or 'none'."),
            ("--restart-pauses", "-1", "a list of up to 100"),
            ("--rest-after", "0.9", "a number of seconds, at least 1."), ("--rest-after", "0", "a number of seconds"),
            ("--restart-pauses", Array(repeating: "1", count: 101).joined(separator: ","), "a list of up to 100"),
        ] {
            let error = #expect(throws: PluginError.self) { try times(option, value) }
            #expect(error?.message.contains("is not \(expected)") == true, "\(error?.message ?? "")")
        }
        for (entry, expected) in [
            ("\"restartPauses\": 1", "restartPauses is 1; it must be a list of up to 100 numbers of seconds."),
            ("\"restartPauses\": [-1]", "restartPauses is [-1]; it must be a list"),
            ("\"restAfter\": 0.5", "restAfter is 0.5; it must be a number of seconds, at least 1."),
            ("\"quietTime\": 1", "quietTime is 1; it must be a number of seconds from 0 to 0.1."),
        ] {
            let file = try folder.file("d.json", "{\(entry)}")
            let error = #expect(throws: PluginError.self) { try configuration(["--config", file]) }
            #expect(error?.message.contains(expected) == true, "\(error?.message ?? "")")
        }
        let resting = try folder.file("e.json", #"{"restAfter": 60}"#)
        #expect(try configuration(["--config", resting]).isolation.restAfter == .seconds(60))
        #expect(try configuration(["--config", resting, "--rest-after", "1"]).isolation.restAfter == .seconds(1))
        let article = try String(
            contentsOfFile: "\(repository)/Sources/PluginHost/PluginHost.docc/ConfigurationAndLog.md", encoding: .utf8)
        #expect(article.contains("/restAfter`` | `--rest-after` | none |"))
        #expect(article.contains("/quietTime`` | `--quiet-time` | 0.005 s |"))
        #expect(article.contains("/restartPauses`` | `--restart-pauses` | 0, 0.1, 1, 10, 60 s |"))
    }

    @Test func `the article and the help state the defaults of all`() throws {
        let article = try String(
            contentsOfFile: "\(repository)/Sources/PluginHost/PluginHost.docc/ConfigurationAndLog.md", encoding: .utf8)
        let defaults = Self.durations(.init(folders: []))
        for deadline in deadlines {
            let row = article.split(separator: "\n").first {
                $0.contains("/\(deadline.name)`` | `\(deadline.option.name)`")
            }
            let number = defaults[deadline.name].map { "\(Int($0 / .seconds(1)))" }
            #expect(row?.contains("| \(number.map { "\($0) s" } ?? "none") |") == true, "\(deadline.name)")
            guard let number, !deadline.option.help.isEmpty else { continue }
            #expect(deadline.option.help.hasSuffix("(default: \(number))"))
        }
    }
}
