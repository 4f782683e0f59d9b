import CPluginABI
import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// Tables of actions that are made from other tables.
@Suite struct NameTableTests {
    private let host = PluginHost(.init(folders: []))

    private func generation(_ name: String, actions: Int) throws -> Generation {
        let names = (0..<actions).map { "action\($0)" }
        let json = """
            {"name": "\(name)", "version": "1.0.0", "targets": [{"name": "\(name)",
             "actions": [\(names.map { #"{"name": "\#($0)"}"# }.joined(separator: ","))]}]}
            """
        let manifest = try Array(json.utf8).withUnsafeBytes { try ModuleManifest(parsing: $0, abiMinor: 0) }
        var functions: [String: plugin_function] = [:]
        for action in names {
            let function = plugin_function(
                name: .immortal("\(name)/\(action)"), invoke: { _, _, _, _ in }, data: nil)
            functions["\(name)/\(action)"] = function
        }
        // The description is only read, and all its bytes are zero.
        let description = UnsafeMutablePointer<plugin_module>.allocate(capacity: 1)
        description.initialize(to: plugin_module())
        let module = LoadedModule(
            .program, toolchain: "", abiMinor: 0, manifest: manifest, routes: [], description: description,
            functions: functions, factories: [:])
        return Generation(module, core: host.core, configuration: [:])
    }

    private func find(_ address: Generation.Address, in table: NameTable) -> Endpoint? {
        table.find(address.target, address.action)?.takeUnretainedValue()
    }

    @Test func `A table that was changed step by step finds what a new one finds`() throws {
        defer { host.shutdown() }
        var random = SplitMix(seed: 23)
        let all = try (0..<60).map { try generation("M\($0)", actions: 1 + $0 % 7) }
        var present = all
        var table = NameTable(present)
        for step in 0..<400 {
            let before = present
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let one = all.randomElement(using: &random)!
                if let index = present.firstIndex(where: { $0 === one }) {
                    present.remove(at: index)
                } else {
                    present.insert(one, at: Int.random(in: 0...present.count, using: &random))
                }
            }
            let change = ModuleChange(from: before, to: present)
            #expect(Set(change.gone.map(\.name)) == Set(before.map(\.name)).subtracting(present.map(\.name)))
            #expect(Set(change.new.map(\.name)) == Set(present.map(\.name)).subtracting(before.map(\.name)))
            table = table.changed(to: present, change)
            for generation in all {
                let isPresent = present.contains { $0 === generation }
                for address in generation.addresses {
                    let found = find(address, in: table)
                    if found !== (isPresent ? address.endpoint : nil) {
                        Issue.record("step \(step): \(generation.name), present: \(isPresent)")
                    }
                }
                #expect((table.targets[generation.name] != nil) == isPresent)
            }
        }
    }

    @Test func `The order of what is in both lists is compared`() throws {
        defer { host.shutdown() }
        let all = try (0..<5).map { try generation("M\($0)", actions: 1) }
        func keepsOrder(_ before: [Int], _ after: [Int]) -> Bool {
            ModuleChange(from: before.map { all[$0] }, to: after.map { all[$0] }).keepsOrder
        }
        #expect(keepsOrder([0, 1, 2], [0, 1, 2]))
        #expect(keepsOrder([0, 1, 2], [0, 2]))
        #expect(keepsOrder([0, 1, 2], [0, 1, 3, 4, 2]))
        #expect(keepsOrder([0, 1, 2], [0, 3, 2]))
        #expect(!keepsOrder([0, 1, 2], [0, 2, 1]))
        #expect(!keepsOrder([0, 1, 2, 3], [3, 0, 1]))
    }
}
