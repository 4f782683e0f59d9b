import FoundationEssentials
import PluginFile

/// The source of a module in a test: a file, a type, or a fake.
///
///     TestBench(.product("Greeter"), peers: .fake(clock), .file("/opt/plugins/libPrices.so"))
public struct ModuleSource: Sendable {
    enum Kind {
        case file(String, beside: [String])
        case code(Manifest)
    }

    private let find: @Sendable () throws(PluginError) -> Kind

    /// Uses a shared library that is already built.
    ///
    ///     .file("/opt/plugins/libGreeter.so")
    ///
    /// - Parameters:
    ///   - path: The path of the file. It is copied into the folder of the bench under its own name.
    ///   - others: Files or folders that are copied before it, to the same folder: resources, libraries that the module
    ///     loads from its own folder, route files.
    public static func file(_ path: String, beside others: [String] = []) -> Self {
        Self { () throws(PluginError) in
            guard FileManager.default.isReadableFile(atPath: path) else {
                throw PluginError(.unreadable, "\(path) does not exist or cannot be read. Build the module first.")
            }
            return .file(path, beside: others)
        }
    }

    /// Uses a dynamic library product of the package under test. SwiftPM builds it with the tests, and puts it beside
    /// them.
    ///
    ///     .product("Greeter")        // libGreeter.so
    ///
    /// The test target need not depend on it, and should not: otherwise the module would be in the process twice.
    ///
    /// - Parameters:
    ///   - name: The name of the product in `Package.swift`: `.library(name: "Greeter", type: .dynamic, …)`.
    ///   - others: Files or folders to copy with the library, as for ``file(_:beside:)``.
    public static func product(_ name: String, beside others: [String] = []) -> Self {
        Self { () throws(PluginError) in
            let program = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
            let folder = program.parentFolder
            let path = "\(folder)/lib\(name).so"
            guard FileManager.default.isReadableFile(atPath: path) else {
                throw PluginError(
                    .unreadable,
                    "There is no lib\(name).so beside the tests, in \(folder). Declare the product in Package.swift, "
                        + ".library(name: \"\(name)\", type: .dynamic, targets: […]), and build the tests again.")
            }
            return .file(path, beside: others)
        }
    }

    /// Uses a module whose type the test can access, as part of the test program.
    ///
    ///     .linked(Greeter.self)
    ///
    /// It is called like a module from a file, but shares its globals with the test and with other benches, and cannot
    /// be replaced by another build of itself.
    public static func linked(_ module: any Module.Type) -> Self {
        let manifest = module.manifest
        return Self { () throws(PluginError) in .code(manifest) }
    }

    /// Uses a fake module that the test defines. Its targets, services, routes and subscriptions are declared as in any
    /// module, so a call with wrong parameters fails as it would in a program.
    ///
    ///     .fake(Manifest("Clock", version: "1.0.0") {
    ///         Target("Clock") { Action("year") { 2026 } }
    ///         Service("Time", version: "1.0.0", target: "Clock")
    ///     })
    public static func fake(_ manifest: Manifest) -> Self { Self { () throws(PluginError) in .code(manifest) } }

    /// Returns the file or the manifest.
    ///
    /// - Throws: `unreadable` if the file does not exist or cannot be read.
    func resolve() throws(PluginError) -> Kind { try find() }
}
