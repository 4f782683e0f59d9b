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
    @Test(.disabled(if: isSanitized), arguments: [false, true])
    func `A process derives the types of a module in Swift`(isIsolated: Bool) throws {
        let host = try TestHost(["ModuleA", "ModuleB"].map { built("lib\($0).so") }) { configuration in
            if isIsolated { configuration.isolation.modules = .all }
        }
        #expect(try basket(host) == "Basket")
        let text = try host.host.typedManifest(of: "ModuleA", timeout: .seconds(600))
        #expect(try Value(json: text)["values"]?[0]?["name"] == "Detail")
        #expect(try Value(json: host.host.servedManifest(of: "ModuleA").text)["values"] == nil)
    }

    @Test func `Without a process there are no derived types, unless the file is sealed with them`() throws {
        let file = built("libModuleB.so")
        let folder = try TemporaryFolder()
        func makeHost(_ file: String) throws -> TestHost {
            try TestHost([file]) { $0.isolation.workerPath = "/nowhere/pluginhost-worker" }
        }
        let host = try makeHost(file)
        #expect(try basket(host) == "object")
        #expect(
            try host.host.typedManifest(of: "ModuleB", timeout: .seconds(1))
                == host.host.servedManifest(of: "ModuleB").text)
        // What the file would say with types.
        let plain = try host.host.servedManifest(of: "ModuleB").text
        let seal = ManifestSeal(
            abiMinor: 0, toolchain: Toolchain.current, manifest: plain,
            typedManifest: plain.replacing("\"result\":\"object\"", with: "\"result\":\"Basket\""))
        let bytes = try [UInt8](Data(contentsOf: URL(filePath: file)))
        let sealed = try bytes.span.withUnsafeBytes { bytes in
            try SealWriter.sealed(bytes, with: seal, path: file)
        }
        try Data(sealed).write(to: URL(filePath: "\(folder.path)/B.so"))
        #expect(try basket(makeHost("\(folder.path)/B.so")) == "Basket")
    }

    @Test(.disabled(if: isSanitized)) func `The types of a registered module are known without starting it`() throws {
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
        #expect(try basket(host) == "object")
    }
}
