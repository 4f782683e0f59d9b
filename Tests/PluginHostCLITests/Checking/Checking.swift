import PluginABI
import PluginHost

@testable import TestSupport

/// A suite that runs `pluginhost check`.
protocol Checking {}

extension Checking {
    /// The built program, without a plugins folder in its arguments.
    func program() throws -> HostProgram {
        var program = try HostProgram()
        program.namesFolder = false
        return program
    }

    func check(_ file: String, _ options: String...) throws -> (outcome: ProgramProcess.Outcome, report: Value) {
        let outcome = try program().run(["check", file, "--json", "--trust", "--seed", "1"] + options)
        return (outcome, try Value(json: outcome.output))
    }

    func result(_ name: String, of report: Value) -> Value? {
        report["checks"]?.list?.first { $0["check"]?.string == name }
    }
}
