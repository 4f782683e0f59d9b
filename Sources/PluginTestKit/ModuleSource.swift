import Foundation
public import PluginABI

/// Where a module of a test comes from.
///
///     TestBench(.product("Greeter"), peers: .fake(clock), .file("/opt/plugins/libPrices.so"))
public struct ModuleSource: Sendable {
    enum Kind {
        case file(String, beside: [String])
        case code(Manifest)
    }

    private let find: @Sendable () throws(PluginError) -> Kind

    /// A shared library that was built before.
    ///
    ///     .file("/opt/plugins/libGreeter.so")
    ///
    /// - Parameters:
    ///   - path: Of the file. It is copied into the folder of the bench under its own name.
    ///   - others: What lies beside it there, and is copied before it: resources, libraries that it finds beside itself,
    ///     files of routes; files or folders.
    public static func file(_ path: String, beside others: [String] = []) -> Self {
        Self { () throws(PluginError) in
            guard FileManager.default.isReadableFile(atPath: path) else {
                throw PluginError(.unreadable, "There is no readable file \(path). Build the module first.")
            }
            return .file(path, beside: others)
        }
    }

    /// A dynamic library product of the package that is tested: SwiftPM builds it with the tests, and it is found beside
    /// them.
    ///
    ///     .product("Greeter")        // libGreeter.so
    ///
    /// The test target need not depend on it, and should not: the module would be in the process twice.
    ///
    /// - Parameters:
    ///   - name: Of the product, as `Package.swift` has it: `.library(name: "Greeter", type: .dynamic, …)`.
    ///   - others: As for ``file(_:beside:)``.
    public static func product(_ name: String, beside others: [String] = []) -> Self {
        Self { () throws(PluginError) in
            let program = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
            let folder = (program as NSString).deletingLastPathComponent
            let path = "\(folder)/lib\(name).so"
            guard FileManager.default.isReadableFile(atPath: path) else {
                throw PluginError(
                    .unreadable,
                    "There is no lib\(name).so beside the tests, in \(folder). The product needs a line in Package.swift, "
                        + ".library(name: \"\(name)\", type: .dynamic, targets: […]); then build the tests again.")
            }
            return .file(path, beside: others)
        }
    }

    /// A module whose type the test can see: it is a part of the test program.
    ///
    ///     .linked(Greeter.self)
    ///
    /// It is called as one of a file is, but shares its globals with the test and with other benches, and cannot be
    /// replaced by another build of itself.
    public static func linked(_ module: any Module.Type) -> Self {
        let manifest = module.manifest
        return Self { () throws(PluginError) in .code(manifest) }
    }

    /// A fake peer: what the test says about it is all that there is. Its targets, services, routes and subscriptions are
    /// declared as a module declares them, so a call with parameters that do not fit fails as it would in earnest.
    ///
    ///     .fake(Manifest("Clock", version: "1.0.0") {
    ///         Target("Clock") { Action("year") { 2026 } }
    ///         Service("Time", version: "1.0.0", target: "Clock")
    ///     })
    public static func fake(_ manifest: Manifest) -> Self { Self { () throws(PluginError) in .code(manifest) } }

    /// - Throws: `unreadable` when there is no such file.
    func resolve() throws(PluginError) -> Kind { try find() }
}
