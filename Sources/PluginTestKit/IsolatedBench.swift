import FoundationEssentials
import Glibc
import PluginFile

extension TestBench {
    /// Changes a configuration so that modules from files run in processes of their own.
    ///
    /// - Throws: `conflict` if the module under test is code of the test; `unreadable` if there is no worker program,
    ///   or the module's file does not exist.
    static func isolate(_ module: ModuleSource, _ configuration: inout PluginHost.Configuration) throws(PluginError) {
        guard case .file(let file, _) = try module.resolve() else {
            throw PluginError(
                .conflict,
                "A module that is part of the test program cannot run in a process of its own. Load it with .product or "
                    + ".file.")
        }
        configuration.isolation.modules = .all
        let folders = [folderOfTests, file.parentFolder]
        let places = configuration.isolation.workerPath.map { [$0] } ?? folders.map { "\($0)/pluginhost-worker" }
        guard let worker = places.first(where: { access($0, X_OK) == 0 }) else {
            throw PluginError(
                .unreadable,
                "There is no program \(places.joined(separator: ", nor ")), which isolated modules need. Add "
                    + ".product(name: \"pluginhost-worker\", package: \"PluginHost\") to the dependencies of the test "
                    + "target, or name the program in the configuration (isolation.workerPath).")
        }
        configuration.isolation.workerPath = worker
    }

    /// Returns the error of a module that does not start, with advice for a bench.
    static func advised(_ error: PluginError) -> PluginError {
        guard error.code == .permissionMissing else { return error }
        return PluginError(
            error.code,
            error.message
                + " On a bench, pass isolated: true, and put the rule without its folder into isolation.rules in the "
                + "closure that changes the configuration.")
    }

    /// The folder of the test program.
    private static var folderOfTests: String {
        let program = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return program.parentFolder
    }
}
