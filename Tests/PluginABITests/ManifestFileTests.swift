import Foundation
import Glibc
import PluginABI
import Testing

@testable import PluginFile
@testable import TestSupport

/// Manifests in separate files, which the header embeds, with real compilers and linkers.
@Suite struct ManifestFileTests {
    private static let json = "{\"name\": \"Filed\", \"version\": \"1.0.0\", \"summary\": \"Über\"}\n"
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        try folder.folder("manifests")
        try folder.file("manifests/filed.json", Self.json)
    }

    private static let source = """
        #include "plugin_abi.h"
        PLUGIN_MANIFEST_FILE("filed.json");
        static const plugin_module module = {
            .magic = PLUGIN_ABI_MAGIC,
            .size = sizeof(plugin_module),
            .abi_major = PLUGIN_ABI_MAJOR,
            .abi_minor = PLUGIN_ABI_MINOR,
            .toolchain = {NULL, 0},
            .manifest = PLUGIN_MANIFEST,
            .functions = NULL,
            .function_count = 0,
            .factories = NULL,
            .factory_count = 0,
            .data = NULL,
            .activate = NULL,
            .deactivate = NULL,
            .get_extension = NULL,
        };
        PLUGIN_MODULE_EXPORT const plugin_module *plugin_module_entry(void) { return &module; }
        """

    struct Build: Sendable, CustomTestStringConvertible {
        let compiler: String
        let options: [String]
        var testDescription: String { "\(compiler) \(options.joined(separator: " "))" }
        /// The options for the language.
        var language: [String] {
            compiler.hasSuffix("++") ? ["-x", "c++", "-std=c++20"] : ["-x", "c", "-std=c11"]
        }
    }

    static let builds: [Build] = ["gcc", "g++", "clang", "clang++"].filter { Tool($0) != nil }.flatMap { compiler in
        let isClang = compiler.hasPrefix("clang")
        let common = [
            ["-O0"], ["-O3", "-g"], ["-Os", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"],
            ["-O2", "-s", "-fvisibility=hidden"],
        ]
        let linking =
            isClang
            ? [["-O2", "-flto", "-fuse-ld=lld"], ["-O2", "-flto=thin", "-fuse-ld=lld", "-Wl,--gc-sections"]]
            : [
                ["-O2", "-flto"], ["-O2", "-flto", "-flto-partition=max"],
                ["-O0", "-flto", "-flto-partition=1to1", "-Wl,--gc-sections"],
            ]
        return (common + linking).map { Build(compiler: compiler, options: $0) }
    }

    @Test(arguments: builds)
    func `The description refers to the bytes of the section`(build: Build) throws {
        let library = "\(folder.path)/libFiled.so"
        let source = try folder.file("filed.c", Self.source)
        // Linkers that optimize look for the file in the current folder.
        try #require(Tool("sh")).run(
            [
                "-c", "cd \"$1\" && shift && exec \"$@\"", "sh", "\(folder.path)/manifests",
                #require(Tool(build.compiler)).path, "-Wall", "-Wextra", "-Wpedantic",
                "-shared", "-fPIC", "-I", headers, "-I", "\(folder.path)/manifests",
            ] + build.options + build.language + [source, "-o", library])

        let image = try #require(dlopen(library, RTLD_NOW | RTLD_LOCAL))
        defer { dlclose(image) }
        let symbol = try #require(dlsym(image, PLUGIN_ENTRY_SYMBOL))
        let module = try #require(unsafeBitCast(symbol, to: plugin_module_entry_function.self)())
        #expect(module.pointee.manifest.text == Self.json)

        let bytes = try #require(FileManager.default.contents(atPath: library))
        try bytes.withUnsafeBytes { bytes in
            let sections = try ELFSections(ELFBytes(bytes: bytes, path: library)).loaded(named: "pluginhost_manifest")
            try #require(sections.count == 1)
            // The section, with its header, lies before the bytes that the description points to.
            let seal = UnsafeRawPointer(module.pointee.manifest.bytes) - MemoryLayout<plugin_seal>.size
            let base = UInt(bitPattern: seal) - UInt(sections[0].address)
            #expect(base.isMultiple(of: UInt(sysconf(Int32(_SC_PAGESIZE)))))
            let header = seal.load(as: plugin_seal.self)
            #expect(header.magic == UInt64(PLUGIN_SEAL_MAGIC) && header.size == 40)
            #expect((header.abi_major, header.abi_minor) == (1, 0))
            #expect(header.manifest_count == Self.json.utf8.count && header.toolchain_count == 0)
            #expect(header.types_count == 0)
            #expect(sections[0].size == 40 + header.manifest_count)
        }
    }

    @Test(arguments: ["gcc", "g++", "clang", "clang++"].filter { Tool($0) != nil })
    func `A missing file is an error of the compiler that names it`(compiler: String) throws {
        let build = Build(compiler: compiler, options: [])
        let arguments = ["-c", "-fPIC", "-I", headers, "-o", "\(folder.path)/x.o"] + build.language
        let tool = try #require(Tool(compiler))
        let source = try folder.file("missing.c", Self.source)
        let error = #expect(throws: Tool.Failed.self) { try tool.run(arguments + [source]) }
        #expect(error?.output.contains("filed.json") == true, "\(error?.output ?? "")")
        #expect(throws: Never.self) { try tool.run(arguments + ["-I\(folder.path)/manifests", source]) }
        if !compiler.hasPrefix("clang") {
            try tool.run(arguments + ["-Wa,-I,\(folder.path)/manifests", source])
        }
    }

    @Test func `The lines of the header make clang list the file as a dependency`() throws {
        let header = try String(contentsOfFile: "\(headers)/plugin_abi/manifest.h", encoding: .utf8)
        let lines = try #require(header.firstMatch(of: /#if !__has_include[^#]*#error[^#]*#endif/)?.0)
            .replacing(" *     ", with: "").replacing("counters", with: "filed")
        let source = try folder.file("filed.c", lines + "\n" + Self.source)
        let arguments = [
            "-std=c11", "-c", "-I", headers, "-MD", "-MF", "\(folder.path)/x.d", "-o", "\(folder.path)/x.o",
        ]
        let clang = try #require(Tool("clang"))
        try clang.run(arguments + ["-I", "\(folder.path)/manifests", source])
        #expect(try String(contentsOfFile: "\(folder.path)/x.d", encoding: .utf8).contains("manifests/filed.json"))
        let error = #expect(throws: Tool.Failed.self) { try clang.run(arguments + [source]) }
        #expect(error?.output.contains("filed.json is missing") == true, "\(error?.output ?? "")")
    }

    @Test func `Two modules with manifests in files can be linked into one program`() throws {
        try folder.file("manifests/other.json", "{}")
        let one = try folder.file("one.c", Self.source + "\nconst plugin_module *one(void) { return &module; }")
        let two = try folder.file(
            "two.c",
            Self.source.replacing("filed.json", with: "other.json")
                + "\nconst plugin_module *two(void) { return &module; }")
        let main = try folder.file(
            "main.c",
            """
            #include "plugin_abi.h"
            const plugin_module *one(void);
            const plugin_module *two(void);
            int main(void) { return one()->manifest.count != \(Self.json.utf8.count) || two()->manifest.count != 2; }
            """)
        let program = "\(folder.path)/program"
        try #require(Tool("clang")).run(
            ["-std=c11", "-D", "PLUGIN_LINKED_IN", "-Wno-unused-function", "-I", headers]
                + ["-I", "\(folder.path)/manifests", one, two, main, "-o", program])
        try #require(Tool("env")).run([program])
    }
}
