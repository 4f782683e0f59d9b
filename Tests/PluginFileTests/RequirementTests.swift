import CPluginABI
import PluginABI
import Testing

@testable import PluginFile
@testable import TestSupport

/// What a module declares, in Swift or in JSON, about its requirements and how it hands over its state.
@Suite struct RequirementTests {
    private func parse(_ text: String, abiMinor: UInt16 = 0) throws -> ModuleManifest {
        try Array(text.utf8).withUnsafeBytes { try ModuleManifest(parsing: $0, abiMinor: abiMinor) }
    }

    private func parse(_ manifest: Manifest) throws -> ModuleManifest {
        let text = manifest.export().pointee.manifest
        return try ModuleManifest(
            parsing: UnsafeRawBufferPointer(start: text.bytes, count: Int(text.count)), abiMinor: 0)
    }

    private func manifest(_ more: String) -> String { #"{"name":"M","version":"1.0.0",\#(more)}"# }

    private func refusal(_ more: String) -> PluginError? {
        do {
            _ = try parse(manifest(more))
            return nil
        } catch {
            return error as? PluginError
        }
    }

    @Test func `Requirements that are declared in Swift are read by the host`() throws {
        let manifest = try parse(
            Manifest("M", version: "1.0.0") {
                Requires(module: "ModuleA", "^1.2")
                Requires(service: "HomeService", ">=1.0")
                Requires(service: "Printing").optional()
                Requires(abiMinor: 0)
            })
        #expect(
            manifest.requirements == [
                .init(subject: .module("ModuleA"), versions: try VersionRange("^1.2")),
                .init(subject: .service("HomeService"), versions: try VersionRange(">=1.0")),
                .init(subject: .service("Printing"), versions: .any, isOptional: true),
            ])
        #expect(manifest.requirements.map(\.description).first == "the module ModuleA ^1.2")
        #expect(manifest.abiMinor == 0 && !manifest.isExclusive)
    }

    @Test func `A module and a service of the same name are two requirements`() throws {
        let manifest = try parse(manifest(#""requires":[{"module":"A"},{"service":"A","optional":true}]"#))
        #expect(manifest.requirements.map(\.subject) == [.module("A"), .service("A")])
        #expect(manifest.requirements.map(\.isOptional) == [false, true])
    }

    @Test(arguments: [
        (#""requires":[{"module":"M"}]"#, "requirement M: the module requires itself"),
        (#""requires":[{"module":"A"},{"module":"A","version":"1"}]"#, "the module A is required twice"),
        (#""requires":[{"service":"S"},{"service":"S"}]"#, "the service S is required twice"),
        (#""requires":[{"module":"A","version":"^1.x.3"}]"#, "requirement A: \"version\" is not a version range"),
        (#""requires":[{"module":"A","version":"^1.x.3"}]"#, "not valid at character 6"),
        (#""requires":[{"module":"A","version":1}]"#, "\"version\" must be a string, such as \"^1.2\", not a number"),
        (#""requires":[{"version":"1"}]"#, "requirement number 1: it must have either"),
        (#""requires":[{"module":"A","service":"B"}]"#, "either \"module\" or \"service\""),
        (#""requires":[{"module":"a b"}]"#, "the name \"a b\" is not allowed"),
        (#""requires":[{"modul":"A"}]"#, "Did you mean “module”?"),
        (#""requires":["A"]"#, "object is expected, not a string"), (#""requires":{}"#, "must be a list"),
        (#""requires":[{"module":"A","optional":"yes"}]"#, "must be true or false"),
        (#""abiMinor":-1"#, "must not be negative"), (#""abiMinor":"1""#, "must be a whole number"),
        (#""exclusive":true"#, "has no hook suspend"),
        (#""exclusive":true,"hooks":["suspend","resume"]"#, "has no hook unsuspend"),
        (#""exclusive":1,"hooks":["suspend","unsuspend"]"#, "must be true or false"),
        (#""stateless":"yes""#, "must be true or false"),
    ])
    func `Invalid requirements are refused, with the reason`(more: String, words: String) {
        #expect(refusal(more)?.code == .invalidManifest)
        #expect(refusal(more)?.message.contains(words) == true, "\(refusal(more)?.message ?? "")")
    }

    @Test func `A module cannot require a version of a service that it offers itself, but any other version`() throws {
        func offering(_ range: String) -> String {
            #""targets":[{"name":"T"}],"services":[{"name":"S","version":"2.0.0","target":"T"}],"#
                + #""requires":[{"service":"S","version":"\#(range)"}]"#
        }
        let error = refusal(offering(">=1.0"))
        #expect(error?.message.contains("requires the service S >=1.0, but offers it itself in version 2.0.0") == true)
        #expect(try parse(manifest(offering("^1.0"))).requirements.count == 1)
    }

    @Test func `A newer binary interface is refused before any unknown part of the manifest`() {
        let error = refusal(#""abiMinor":9,"concurrency":"quantum","planets":[]"#)
        #expect(error?.code == .invalidManifest, "this one claims to be built for the host's version")
        let message = #expect(throws: PluginError.self) {
            try parse(manifest(#""abiMinor":9,"concurrency":"quantum","planets":[]"#), abiMinor: 9)
        }
        #expect(message?.code == .incompatible)
        #expect(
            message?.message.contains("M 1.0.0 needs version \(PLUGIN_ABI_MAJOR).9 of the binary interface") == true)
        #expect(message?.message.contains("this host has \(PLUGIN_ABI_MAJOR).\(PLUGIN_ABI_MINOR)") == true)
        #expect(refusal(#""abiMinor":9"#)?.code == .incompatible)
    }

    // MARK: Handing over state

    @Test func `Hooks that hand over state are declared asynchronous if their closures are`() throws {
        let synchronous = try parse(
            Manifest("M", version: "1.0.0") {
                On(.suspend) { _ in ["count": 5] }
                On(.resume, [String: Int].self) { _, _, _ in }
                On(.unsuspend) { _ in }
            }
            .exclusive().stateless())
        #expect(synchronous.hooks == [.suspend, .resume, .unsuspend] && synchronous.asyncHooks.isEmpty)
        #expect(synchronous.isExclusive && synchronous.isStateless)
        let asynchronous = try parse(
            Manifest("M", version: "1.0.0") {
                On(.suspend) { _ in
                    try await Task.sleep(for: .zero)
                    return 5
                }
                On(.resume, Value.self) { _, _, _ in try await Task.sleep(for: .zero) }
                On(.unsuspend) { _ in try await Task.sleep(for: .zero) }
            })
        #expect(asynchronous.asyncHooks == [.suspend, .resume, .unsuspend])
        #expect(!asynchronous.isExclusive && !asynchronous.isStateless)
    }

    @Test func `Only resume has parameters: the state and the version that handed it over`() {
        for hook in ModuleManifest.Hook.allCases {
            #expect(hook.parameters.map(\.name) == (hook == .resume ? ["state", "version"] : []))
        }
    }

    @Test func `A closure for resume gets the state in its own type, and the version`() throws {
        final class Box: @unchecked Sendable {
            var state: [Int] = []
            var version = ""
        }
        let box = Box()
        let module = Manifest("M", version: "2.0.0") {
            On(.resume, [Int].self) { _, state, version in (box.state, box.version) = (state, version) }
        }
        .export()
        let function = try #require(
            UnsafeBufferPointer(start: module.pointee.functions, count: Int(module.pointee.function_count)).first)
        var table = plugin_host()
        table.resolve = { _, _, _ in 0 }
        table.reject = { _, _, _ in 0 }
        withUnsafePointer(to: table) { table in
            #expect(module.pointee.activate(module.pointee.data, table) == 0)
            let numbers = [plugin_value_int(1), plugin_value_int(2)]
            numbers.withUnsafeBufferPointer { numbers in
                let version = Array("1.5.0".utf8CString)
                version.withUnsafeBufferPointer { version in
                    let arguments = [
                        plugin_value_list(numbers.baseAddress, 2), plugin_value_string(version.baseAddress, 5),
                    ]
                    var call = plugin_call()
                    call.size = UInt32(MemoryLayout<plugin_call>.size)
                    call.token = 1
                    function.invoke(function.data, &call, arguments, 2)
                }
            }
        }
        #expect(box.state == [1, 2] && box.version == "1.5.0")
    }
}
