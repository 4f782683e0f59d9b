import Foundation
import PluginABI
import PluginHost
import Testing

@testable import PluginFile
@testable import TestSupport

@Suite struct ServedManifestTests {
    @Test func `The manifest of a module that serves can be read, and only that`() throws {
        let host = try TestHost([CModule(name: "Served").build()])
        let served = try host.host.servedManifest(of: "Served")
        #expect(try Value(json: served.text)["name"] == "Served")
        #expect(served.file.hasSuffix("/0.so"))
        #expect(served.copy != nil && served.digest != nil)
        // Nothing is derived from a module in C.
        #expect(try host.host.typedManifest(of: "Served", timeout: .seconds(600)) == served.text)
        let error = #expect(throws: PluginError.self) { try host.host.servedManifest(of: "Servd") }
        #expect(error?.code == .unknownModule)
        #expect(error?.message.contains("Served") == true)
        #expect(throws: PluginError.self) { try host.host.typedManifest(of: "Servd", timeout: .seconds(1)) }
    }

    /// The type of the result of `B/basket`, which the module derives.
    private func basket(_ host: TestHost) throws -> Value? {
        let manifest = try Value(json: host.host.typedManifest(of: "ModuleB", timeout: .seconds(600)))
        let actions = manifest["targets"]?[0]?["actions"]?.list ?? []
        return actions.first { $0["name"] == "basket" }?["result"]
    }

    // The worker opens no modules of a build with sanitizers.
    @Test(.disabled(if: isSanitized || modulesAreIsolated))
    func `A process derives the types of a module in Swift`() throws {
        let host = try TestHost(["ModuleA", "ModuleB"].map { built("lib\($0).so") })
        #expect(try basket(host) == "Basket")
        let text = try host.host.typedManifest(of: "ModuleA", timeout: .seconds(600))
        #expect(try Value(json: text)["values"]?[0]?["name"] == "Detail")
        #expect(try Value(json: host.host.servedManifest(of: "ModuleA").text)["values"] == nil)
    }

    @Test(.disabled(if: isSanitized)) func `The code of an isolated module does not run outside its sandbox`() throws {
        let folder = try TemporaryFolder()
        // It says that it is in Swift, and notes each time that it is opened.
        let module = try CModule(
            name: "Alone", entry: "note(\"\(folder.path)/notes\", \"open \");", toolchain: "{\"swift 6\", 7}"
        ).build()
        let host = try TestHost([module]) { configuration in
            configuration.isolation.modules = .all
            var rule = IsolationRule("*")
            rule.writablePaths = [folder.path]
            configuration.isolation.rules.append(rule)
        }
        func notes() throws -> String { try String(contentsOfFile: "\(folder.path)/notes", encoding: .utf8) }
        let before = try notes()
        #expect(
            try host.host.typedManifest(of: "Alone", timeout: .seconds(600))
                == host.host.servedManifest(of: "Alone").text)
        #expect(try notes() == before)
    }

    @Test func `Without a process there are no derived types, unless the file is sealed with them`() throws {
        let file = built("libModuleB.so")
        let folder = try TemporaryFolder()
        func makeHost(_ file: String) throws -> TestHost {
            try TestHost([file]) { $0.isolation.workerPath = "/nowhere/pluginhost-worker" }
        }
        let host = try makeHost(file)
        let error = #expect(throws: PluginError.self) { try basket(host) }
        #expect(error?.code == .openFailed && error?.message.contains("0.so") == true)
        // What the file would say with types.
        let plain = try host.host.servedManifest(of: "ModuleB").text
        func sealed(_ types: String) throws -> String {
            let seal = ManifestSeal(
                abiMinor: 0, toolchain: Toolchain.current, manifest: plain, typedManifest: types)
            let bytes = try [UInt8](Data(contentsOf: URL(filePath: file)))
            let sealed = try bytes.span.withUnsafeBytes { bytes in
                try SealWriter.sealed(bytes, with: seal, path: file)
            }
            let path = "\(folder.path)/\(types.utf8.count).so"
            try Data(sealed).write(to: URL(filePath: path))
            return path
        }
        let types = plain.replacing("\"result\":\"object\"", with: "\"result\":\"Basket\"")
        #expect(try basket(makeHost(sealed(types))) == "Basket")
        let other = types.replacing("\"name\":\"ModuleB\"", with: "\"name\":\"Module\"")
        let foreign = #expect(throws: PluginError.self) { try basket(makeHost(sealed(other))) }
        #expect(foreign?.code == .invalidManifest)
    }

    @Test(.disabled(if: isSanitized || modulesAreIsolated))
    func `The types of a registered module are known without starting it`() throws {
        let folder = try TemporaryFolder()
        let plugins = try folder.folder("plugins")
        try folder.copy(built("libModuleB.so"), as: "plugins/B.so")
        usleep(30_000)  // A file that has just changed is not recorded.
        func makeHost() throws -> TestHost {
            let host = try TestHost { configuration, _ in
                (configuration.folders, configuration.start, configuration.watches) = ([plugins], .lazy, false)
                configuration.registryCache = "\(folder.path)/cache"
            }
            try host.start()
            return host
        }
        let first = try makeHost()
        #expect(first.states == ["B.so": "active"])
        first.host.shutdown()
        let host = try makeHost()
        #expect(host.states == ["B.so": "registered"])
        #expect(try basket(host) == "Basket")
        #expect(host.states == ["B.so": "registered"])
        // Another file in its place is another module.
        let module = try CModule(name: "Other").build()
        try folder.copy(module, as: "new.so")
        #expect(rename("\(folder.path)/new.so", "\(plugins)/B.so") == 0)
        let error = #expect(throws: PluginError.self) { try basket(host) }
        #expect(error?.message.hasSuffix("has changed since the host has read it.") == true)
    }
}
