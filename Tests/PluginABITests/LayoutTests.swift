import Foundation
import PluginABI
import Testing

@testable import TestSupport

/// The layout of the binary interface, so that it cannot drift by accident. A change here is a new major version, or an
/// addition at the end of a structure that begins with its size.
@Suite struct LayoutTests {
    @Test func `A string is 16 bytes`() {
        expect(plugin_string.self, 16, 8, [(\.bytes, 0), (\.count, 8)])
    }

    @Test func `A value is 16 bytes, with its payload after the kind and the count`() {
        expect(plugin_value.self, 16, 8, [(\.kind, 0), (\.count, 4), (\.as, 8)])
    }

    @Test func `An entry is a key and a value`() {
        expect(plugin_entry.self, 32, 8, [(\.key, 0), (\.value, 16)])
    }

    @Test func `An error is three strings`() {
        expect(plugin_error.self, 48, 8, [(\.code, 0), (\.message, 16), (\.source, 32)])
    }

    @Test func `A call is 40 bytes`() {
        expect(
            plugin_call.self, 40, 8,
            [(\.size, 0), (\.flags, 4), (\.token, 8), (\.instance, 16), (\.deadline, 24), (\.result, 32)])
    }

    @Test func `A function is 32 bytes, and a factory 40`() {
        expect(plugin_function.self, 32, 8, [(\.name, 0), (\.invoke, 16), (\.data, 24)])
        expect(plugin_factory.self, 40, 8, [(\.target, 0), (\.make, 16), (\.destroy, 24), (\.data, 32)])
    }

    @Test func `The description begins with magic, length and version`() {
        expect(
            plugin_module.self, 112, 8,
            [
                (\.magic, 0), (\.size, 8), (\.abi_major, 12), (\.abi_minor, 14), (\.toolchain, 16), (\.manifest, 32),
                (\.functions, 48), (\.function_count, 56), (\.factories, 64), (\.factory_count, 72), (\.data, 80),
                (\.activate, 88), (\.deactivate, 96), (\.get_extension, 104),
            ])
    }

    @Test func `A request is 96 bytes`() {
        expect(
            plugin_request.self, 96, 8,
            [
                (\.size, 0), (\.address, 4), (\.target, 8), (\.action, 24), (\.object, 40), (\.parameters, 48),
                (\.parameter_count, 56), (\.timeout, 64), (\.flags, 72), (\.method, 76), (\.version, 80),
            ])
    }

    @Test func `The host's table is 104 bytes, with functions from byte 16 on`() {
        expect(
            plugin_host.self, 104, 8,
            [
                (\.size, 0), (\.abi_major, 4), (\.abi_minor, 6), (\.implementation, 8), (\.perform, 16), (\.call, 24),
                (\.cancel, 32), (\.resolve, 40), (\.reject, 48), (\.on_cancel, 56), (\.object_create, 64),
                (\.callback_create, 72), (\.object_retain, 80), (\.object_release, 88), (\.get_extension, 96),
            ])
    }

    @Test func `The extensions of the host keep their layouts`() {
        expect(plugin_log.self, 16, 8, [(\.size, 0), (\.reserved, 4), (\.write, 8)])
        expect(plugin_configuration.self, 16, 8, [(\.size, 0), (\.reserved, 4), (\.read, 8)])
        expect(
            plugin_context.self, 88, 8,
            [
                (\.size, 0), (\.reserved, 4), (\.module, 8), (\.file, 24), (\.folder, 40), (\.configuration, 56),
                (\.values, 72),
            ])
        expect(
            plugin_services.self, 32, 8,
            [(\.size, 0), (\.reserved, 4), (\.info, 8), (\.request, 16), (\.wait, 24)])
        expect(plugin_bound.self, 24, 8, [(\.size, 0), (\.reserved, 4), (\.bind, 8), (\.perform, 16)])
        expect(
            plugin_chain.self, 24, 8, [(\.size, 0), (\.reserved, 4), (\.receiver, 8), (\.set_parent, 16)])
        expect(plugin_routes.self, 24, 8, [(\.size, 0), (\.reserved, 4), (\.can_open, 8), (\.build, 16)])
        expect(plugin_profile.self, 16, 8, [(\.size, 0), (\.reserved, 4), (\.mark, 8)])
        expect(plugin_instances.self, 16, 8, [(\.size, 0), (\.reserved, 4), (\.release, 8)])
        expect(plugin_call_contexts.self, 16, 8, [(\.size, 0), (\.reserved, 4), (\.read, 8)])
        expect(
            plugin_call_context.self, 80, 8,
            [
                (\.size, 0), (\.trace_flags, 4), (\.reserved, 5), (\.trace_id, 8), (\.span_id, 24),
                (\.trace_parent, 32),
                (\.trace_state, 48), (\.caller, 64),
            ])
    }

    @Test func `The header of a seal is 40 bytes`() {
        expect(
            plugin_seal.self, 40, 8,
            [
                (\.magic, 0), (\.size, 8), (\.abi_major, 12), (\.abi_minor, 14), (\.manifest_count, 16),
                (\.toolchain_count, 24), (\.types_count, 32),
            ])
        #expect(PLUGIN_SEAL_SECTION == "pluginhost_manifest")
        withUnsafeBytes(of: UInt64(PLUGIN_SEAL_MAGIC)) { #expect(String(decoding: $0, as: UTF8.self) == "PLUGSEAL") }
    }

    @Test func `The constants keep their values`() {
        #expect(PLUGIN_ABI_MAGIC == 0x5453_4F48_4755_4C50)
        #expect((PLUGIN_ABI_MAJOR, PLUGIN_ABI_MINOR) == (1, 0))
        #expect(PLUGIN_ENTRY_SYMBOL == "plugin_module_entry")
        #expect(PLUGIN_MANIFEST_MAX_BYTES == 1 << 20)
        #expect(PLUGIN_DEPTH_MAX == 128)
        #expect(
            [
                PLUGIN_KIND_NULL, PLUGIN_KIND_BOOL, PLUGIN_KIND_INT, PLUGIN_KIND_DOUBLE, PLUGIN_KIND_STRING,
                PLUGIN_KIND_BYTES, PLUGIN_KIND_LIST, PLUGIN_KIND_MAP, PLUGIN_KIND_OBJECT,
            ] == Array(0...8))
        #expect(PLUGIN_KIND_NONE == .max)
        #expect([PLUGIN_CALL_REMOTE, PLUGIN_CALL_IN_PLACE] == [1, 2])
        #expect(
            [
                PLUGIN_ADDRESS_ACTION, PLUGIN_ADDRESS_URL, PLUGIN_ADDRESS_OBJECT, PLUGIN_ADDRESS_SERVICE,
                PLUGIN_ADDRESS_EVENT, PLUGIN_ADDRESS_BOUND, PLUGIN_ADDRESS_CHAIN,
            ] == [0, 1, 2, 3, 4, 5, 6])
        #expect([PLUGIN_PARENT_SET, PLUGIN_PARENT_GONE, PLUGIN_PARENT_CIRCULAR] == [0, 1, 2])
        #expect(PLUGIN_CHAIN_EXTENSION == "pluginhost.chain/1")
        #expect(
            [PLUGIN_REQUEST_REMOTE, PLUGIN_REQUEST_OBJECT, PLUGIN_REQUEST_FRESH, PLUGIN_REQUEST_STICKY] == [1, 2, 4, 8])
        #expect(PLUGIN_BOUND_EXTENSION == "pluginhost.bound/1")
        #expect(PLUGIN_SERVICES_EXTENSION == "pluginhost.services/1")
        #expect([PLUGIN_CALL_REMOTE, PLUGIN_REQUEST_REMOTE, PLUGIN_OBJECT_ASYNC] == [1, 1, 1])
        #expect([PLUGIN_REPLY_ACCEPTED, PLUGIN_REPLY_STALE, PLUGIN_REPLY_REFUSED] == [0, 1, 2])
        #expect([PLUGIN_LOG_DEBUG, PLUGIN_LOG_INFO, PLUGIN_LOG_WARNING, PLUGIN_LOG_ERROR] == [0, 1, 2, 3])
        #expect(PLUGIN_LOG_EXTENSION == "pluginhost.log/1" && PLUGIN_CONTEXT_EXTENSION == "pluginhost.context/1")
        #expect(PLUGIN_CONFIGURATION_EXTENSION == "pluginhost.configuration/1")
        #expect(PLUGIN_ROUTES_EXTENSION == "pluginhost.routes/1")
        #expect(PLUGIN_INSTANCES_EXTENSION == "pluginhost.instances/1")
        #expect(PLUGIN_PROFILE_EXTENSION == "pluginhost.profile/1")
        #expect(PLUGIN_CALL_CONTEXT_EXTENSION == "pluginhost.call-context/1" && PLUGIN_TRACE_SAMPLED == 1)
        #expect([PLUGIN_TRACE_STATE_MAX_BYTES, PLUGIN_CALL_CALLER_MAX_BYTES] == [512, 1024])
        #expect(
            [PLUGIN_METHOD_GET, PLUGIN_METHOD_POST, PLUGIN_METHOD_PUT, PLUGIN_METHOD_PATCH, PLUGIN_METHOD_DELETE]
                == [1, 2, 3, 4, 5])
        #expect(RouteMethod.allCases.map(\.number) == [1, 2, 3, 4, 5])
        #expect(RouteMethod.allCases.allSatisfy { RouteMethod(number: $0.number) == $0 })
        #expect([PLUGIN_MARK_NAME_MAX_BYTES, PLUGIN_MARKS_MAX] == [256, 10_000])
        #expect(
            [
                PLUGIN_HOOK_SET_UP, PLUGIN_HOOK_INIT, PLUGIN_HOOK_DID_START, PLUGIN_HOOK_WILL_STOP,
                PLUGIN_HOOK_TEAR_DOWN, PLUGIN_HOOK_SUSPEND, PLUGIN_HOOK_RESUME, PLUGIN_HOOK_UNSUSPEND,
            ] == ["@setUp", "@init", "@didStart", "@willStop", "@tearDown", "@suspend", "@resume", "@unsuspend"])
        #expect([PLUGIN_EVENT_DELIVERED, PLUGIN_EVENT_FAILURES] == ["delivered", "failures"])
        #expect(
            [
                PLUGIN_INTERCEPTED_TARGET, PLUGIN_INTERCEPTED_ACTION, PLUGIN_INTERCEPTED_PARAMETERS,
                PLUGIN_INTERCEPTED_REMOTE, PLUGIN_INTERCEPTED_ROUTE, PLUGIN_INTERCEPTED_CONTINUE,
            ] == ["target", "action", "parameters", "remote", "route", "call"])
        withUnsafeBytes(of: UInt64(PLUGIN_ABI_MAGIC)) { #expect(String(decoding: $0, as: UTF8.self) == "PLUGHOST") }
    }

    @Test func `The log levels equal those of the header`() {
        #expect(LogLevel.allCases.map(\.rawValue) == [0, 1, 2, 3])
    }

    @Test(arguments: [("clang", "c", "c11"), ("clang", "c++", "c++17"), ("gcc", "c", "c11"), ("g++", "c++", "c++17")])
    func `The header compiles as C11 and as C++17 without a warning`(
        compiler: String, language: String, standard: String
    ) throws {
        guard let compiler = Tool(compiler) else { return }  // gcc may be missing; clang comes with Swift.
        let source = """
            \(try headerFiles().map { "#include \"\($0)\"" }.joined(separator: "\n"))
            PLUGIN_MODULE_EXPORT const plugin_module *plugin_module_entry(void) { return 0; }
            plugin_string name(void) { return PLUGIN_STRING("name"); }
            plugin_value list(const plugin_value *values) { return plugin_value_list(values, 2); }
            """
        let output = try compiler.run(
            ["-x", language, "-std=\(standard)", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"]
                + ["-I", headers, "-"], input: source)
        #expect(output.isEmpty)
    }

    @Test func `Each header can be included alone, and the core includes all of them`() throws {
        let clang = try #require(Tool("clang"))
        for file in try headerFiles() {
            let source = "#include \"\(file)\"\nint size(void) { return sizeof(plugin_module); }"
            let arguments = ["-x", "c", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", headers, "-"]
            #expect(try clang.run(arguments, input: source).isEmpty, "\(file)")
        }
        let core = try String(contentsOfFile: "\(headers)/plugin_abi.h", encoding: .utf8)
        #expect(core.contains("#include \"plugin_abi/all.h\""))
        let all = try String(contentsOfFile: "\(headers)/plugin_abi/all.h", encoding: .utf8)
        for file in try headerFiles().dropFirst() where !["plugin_abi/layout.h", "plugin_abi/all.h"].contains(file) {
            #expect(all.contains("#include \"\(file.dropFirst("plugin_abi/".count))\""), "\(file)")
        }
    }

    @Test func `The core has at most 300 lines, and the lines of all headers at most 100 columns`() throws {
        for file in try headerFiles() {
            let text = try String(contentsOfFile: "\(headers)/\(file)", encoding: .utf8)
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            #expect(lines.allSatisfy { $0.count <= 100 }, "\(file)")
            if file == "plugin_abi.h" { #expect(lines.count <= 301) }
        }
    }

    @Test func `The helper functions find map entries, compare strings and make values`() {
        let three = plugin_string("three")
        let entries = [
            plugin_entry(key: plugin_string("a"), value: plugin_value_int(1)),
            plugin_entry(key: plugin_string(), value: plugin_value_int(2)),
            plugin_entry(key: plugin_string("a"), value: plugin_value_text(three.bytes)),
        ]
        entries.withUnsafeBufferPointer { entries in
            var map = plugin_value_map(entries.baseAddress, 3)
            #expect(plugin_string_of(plugin_map_find(&map, "a")).text == "three")
            #expect(plugin_map_find(&map, "")?.pointee.as.integer == 2)
            #expect(plugin_map_find(&map, "b") == nil && plugin_map_find(nil, "a") == nil)
            map.kind = PLUGIN_KIND_LIST
            #expect(plugin_map_find(&map, "a") == nil && plugin_string_of(&map).count == 0)
        }
        #expect(plugin_string_equals(plugin_string("text"), "text") && plugin_string_equals(plugin_string(), ""))
        for other in ["tex", "texts", "Text", ""] { #expect(!plugin_string_equals(plugin_string("text"), other)) }
        #expect(plugin_string_from(three.bytes).text == "three" && plugin_string_from(nil).count == 0)
        let request = plugin_request_object(7, three, nil, 0)
        #expect(request.size == 96 && request.address == PLUGIN_ADDRESS_OBJECT && request.object == 7)
        #expect(request.target.count == 0 && request.action.text == "three" && request.timeout == 0)
    }

    // MARK: -

    /// The headers by their paths, the core first.
    private func headerFiles() throws -> [String] {
        let files = try FileManager.default.contentsOfDirectory(atPath: "\(headers)/plugin_abi")
        return ["plugin_abi.h"] + files.sorted().map { "plugin_abi/\($0)" }
    }

    private func expect<T>(
        _ type: T.Type, _ size: Int, _ alignment: Int, _ offsets: [(PartialKeyPath<T>, Int)],
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(MemoryLayout<T>.size == size, sourceLocation: sourceLocation)
        #expect(MemoryLayout<T>.stride == size, sourceLocation: sourceLocation)
        #expect(MemoryLayout<T>.alignment == alignment, sourceLocation: sourceLocation)
        for (field, offset) in offsets {
            #expect(MemoryLayout<T>.offset(of: field) == offset, "\(field)", sourceLocation: sourceLocation)
        }
    }
}
