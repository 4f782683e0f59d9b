import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// A Swift module that was built with a different toolchain from the host's.
@Suite struct OtherToolchainTests {
    private static let source = #"""
        import CPluginABI

        nonisolated(unsafe) var host: UnsafePointer<plugin_host>!

        func lasting(_ text: String) -> plugin_string {
            let bytes = Array(text.utf8CString)
            let memory = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
            memory.initialize(from: bytes, count: bytes.count)
            return plugin_string(bytes: memory, count: UInt64(bytes.count - 1))
        }

        @_cdecl("plugin_module_entry") public func entry() -> UnsafeRawPointer {
            let function = UnsafeMutablePointer<plugin_function>.allocate(capacity: 1)
            function.initialize(to: plugin_function())
            function.pointee.name = lasting("Other/sum")
            function.pointee.invoke = { _, call, _, _ in
                // Generic code and strings use the runtime.
                let sum = (1...10).map { "\($0)" }.compactMap { Int64($0) }.reduce(0, +)
                var result = plugin_value_int(sum)
                _ = host.pointee.resolve(host, call!.pointee.token, &result)
            }
            let module = UnsafeMutablePointer<plugin_module>.allocate(capacity: 1)
            module.initialize(to: plugin_module())
            module.pointee.magic = UInt64(PLUGIN_ABI_MAGIC)
            module.pointee.size = UInt32(MemoryLayout<plugin_module>.size)
            module.pointee.abi_major = UInt16(PLUGIN_ABI_MAJOR)
            module.pointee.abi_minor = UInt16(PLUGIN_ABI_MINOR)
            module.pointee.toolchain = lasting("Swift version 5.1 (of another time)")
            module.pointee.manifest = lasting(
                #"{"name": "Other", "version": "1.0.0", "targets": [{"name": "Other", "actions": [{"name": "sum"}]}]}"#)
            (module.pointee.functions, module.pointee.function_count) = (UnsafePointer(function), 1)
            module.pointee.activate = { _, table in
                host = table
                return 0
            }
            return UnsafeRawPointer(module)
        }
        """#

    @Test(arguments: [["-static-stdlib"], []])
    func `It runs in a process of its own, and shares no runtime with the host`(_ options: [String]) async throws {
        let folder = try TemporaryFolder()
        let library = "\(folder.path)/libOther.so"
        let compiler = try #require(Tool("swiftc"))
        try await compiler.runAside(
            ["-emit-library", "-parse-as-library", "-module-name", "Other", "-o", library] + options
                + SwiftSource.modules + [folder.file("Other.swift", Self.source)])
        let isolated = try await host(library, .all)
        #expect(try isolated.host.perform("Other", "sum") == 55)
        guard options.isEmpty else { return }  // With -static-stdlib, the module has its own runtime.
        let host = try await host(library, .none)
        #expect(host.status("other.so")?.error?.code == .incompatible)
    }

    private func host(_ library: String, _ modules: Isolation.Modules) async throws -> TestHost {
        let host = try TestHost { configuration, folder in
            try folder.copy(library, as: "plugins/other.so")
            configuration.watches = false
            configuration.isolation.modules = modules
        }
        try await host.startAside()
        return host
    }
}
