import Foundation
import PluginTestKit
import Synchronization
import Testing

@testable import TestSupport

/// The guide's modules in C, built with the toolchain's clang.
@Suite struct CTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func build(_ blocks: ArraySlice<String>, _ name: String) async throws -> ModuleSource {
        let source = try folder.file("\(name).c", blocks.joined(separator: "\n"))
        for (index, block) in try Article("AModuleInC").blocks("json").enumerated() {
            try folder.file(index == 0 ? "echo.json" : "notes.json", block)
        }
        let library = "\(folder.path)/lib\(name).so"
        try await #require(Tool("clang")).runAside(
            ["-std=c11", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-shared", "-fPIC"]
                + ["-I", headers, "-I", folder.path, "-o", library, source])
        return .file(library)
    }

    @Test func `The first module returns its parameter`() async throws {
        let bench = try await TestBench(build(Article("AModuleInC").blocks("c").prefix(1), "Echo"))
        #expect(try bench.host.perform("Echo", "say", ["text": "hey"]) == "hey")
    }

    @Test func `The module in the header makes an object, which calls a callback`() async throws {
        let header = try String(contentsOfFile: "\(headers)/plugin_abi/entry.h", encoding: .utf8)
        let example = header.split(separator: "\n").filter { $0 == " *" || $0.hasPrefix(" *     ") }
            .prefix { !$0.contains("PLUGIN_MODULE_RECORD") }.map { String($0.dropFirst(7)) }
        let bench = try await TestBench(build([example.joined(separator: "\n")], "Counters"))
        do {
            let counter = try #require(try bench.host.perform("Counters", "make").object)
            let double = bench.host.callback { arguments in .int((arguments.first?.int ?? 0) * 2) }
            #expect(try counter.perform("add", [2, double.value]) == 4)
            #expect(try counter.perform("add", [3, double.value]) == 10)
            let failing = bench.host.callback { _ in throw PluginError("no", "No.") }
            #expect(throws: PluginError.self) { try counter.perform("add", [1, failing.value]) }
        }
        let report = await bench.finish()
        #expect(report.isClean, "\(report)")
    }

    @Test func `The larger module fails, calls, replies later, and returns objects`() async throws {
        let greeter = Manifest("Greetings", version: "1.0.0") {
            Target("Greeter") { Action("greet", .required("name", String.self)) { name in "Hi, \(name)" } }
            Target("Formats") { Action("format", .required("amount", Double.self)) { amount in "\(amount) EUR" } }
            Service("PriceFormat", version: "1.3.0", target: "Formats")
        }
        let notes = try await build(Article("AModuleInC").blocks("c").dropFirst(), "Notes")
        let bench = try await TestBench(notes, peers: .fake(greeter)) {
            $0.moduleConfiguration = ["Notes": ["room": 12]]
        }
        let host = bench.host
        #expect(try host.perform("Notes", "room") == 12 && host.perform("Notes", "price", [2]) == "2.0 EUR")
        let noticed = bench.listen(to: "notes.noticed")
        let posted = try await host.post("shop.sold", ["item": "lamp"])
        #expect(posted.delivered == 1 && posted.failures.isEmpty)
        #expect(noticed.events.first == ["item": "lamp"])
        #expect(bench.log.contains { $0.message == "Room for 16 notes." })
        #expect(try host.perform("Notes", "greeting", ["Ada"]) == "Hi, Ada")
        #expect(try await host.call("Notes", "remind", [1]) == "ring")
        #expect(try host.perform("Notes", "add", ["milk"]) == 1)
        for number in 2...16 { try host.perform("Notes", "add", [.string("\(number)")]) }
        let error = #expect(throws: PluginError.self) { try host.perform("Notes", "add", ["more"]) }
        #expect(error?.code == "full" && error?.source == "Notes")
        do {
            let reader = try #require(try host.perform("Notes", "reader").object)
            #expect(try [reader.perform("next"), reader.perform("next")] == ["milk", "2"])
            let heard = Mutex(0)
            let body = host.callback { arguments in
                heard.withLock { $0 += arguments[0].string == nil ? 0 : 1 }
                return .null
            }
            #expect(try host.service("Notebook").perform("each", [body.value]) == 16)
            #expect(heard.withLock { $0 } == 16)
        }
        let report = await bench.finish()
        #expect(report.isClean, "\(report)")
    }

    @Test func `The larger module keeps its notes when it is replaced by another build`() async throws {
        let bench = try await TestBench(build(Article("AModuleInC").blocks("c").dropFirst(), "Notes"))
        #expect(try await bench.host.open("app://notes/add/milk") == 1)
        try await bench.replace()
        #expect(try bench.host.perform("Notes", "add", ["bread"]) == 2)
        #expect(try bench.host.perform("Notes", "reader").object?.perform("next") == "milk")
    }
}

private let cPlusPlusCompilers = ["g++", "clang++"].filter { Tool($0) != nil }

/// The modules in C++ from the examples and the guide, if there is a compiler.
@Suite(.enabled(if: !cPlusPlusCompilers.isEmpty, "There is no g++ and no clang++ on this machine."))
struct CPlusPlusTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func build(_ source: String, _ library: String, _ compiler: String) async throws -> ModuleSource {
        try await #require(Tool(compiler)).runAside(
            ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", "-fvisibility=hidden"]
                + ["-I", headers, "-I", "\(repository)/Examples/CPlusPlus", "-I", folder.path]
                + ["-o", "\(folder.path)/\(library)", source])
        return .file("\(folder.path)/\(library)")
    }

    @Test(arguments: cPlusPlusCompilers)
    func `The example counts words, and its exceptions become errors`(compiler: String) async throws {
        let bench = try await TestBench(
            build("\(repository)/Examples/CPlusPlus/Words.cpp", "libWords.so", compiler))
        let host = bench.host
        #expect(try host.perform("Words", "count", ["a rose is a rose"]) == ["a": 2, "is": 1, "rose": 2])
        #expect(try await host.open("app://words/a%20b%20a", origin: .remote) == ["a": 2, "b": 1])
        let many = #expect(throws: PluginError.self) {
            try host.perform("Words", "count", [.string((0...64).map { "w\($0)" }.joined(separator: " "))])
        }
        #expect(many?.code == "tooMany" && many?.source == "Words")

        try host.perform("Glossary", "define", ["rose", "a flower"])
        #expect(try host.perform("Glossary", "meaning", ["rose"]) == "a flower")
        let unknown = #expect(throws: PluginError.self) { try host.perform("Glossary", "meaning", ["tulip"]) }
        #expect(unknown?.code == "unknownWord" && unknown?.message == "Nobody has defined “tulip”.")
        let report = await bench.finish()
        #expect(report.isClean, "\(report)")
    }

    @Test(arguments: cPlusPlusCompilers) func `The module of the article shouts`(compiler: String) async throws {
        try folder.file("loud.json", try #require(try Article("AModuleInCPlusPlus").blocks("json").first))
        let source = try folder.file("loud.cpp", try #require(try Article("AModuleInCPlusPlus").blocks("cpp").first))
        let bench = try await TestBench(build(source, "libLoud.so", compiler))
        #expect(try bench.host.perform("Loud", "shout", ["hey"]) == "HEY")
        let error = #expect(throws: PluginError.self) { try bench.host.perform("Loud", "shout", [""]) }
        #expect(error?.code == .actionFailed && error?.message == "There is nothing to shout.")
    }
}

/// The modules in Rust from the examples and the guide, if there is a compiler.
@Suite(.enabled(if: Tool("rustc") != nil, "There is no rustc on this machine."))
struct RustTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func build(_ source: String, _ library: String) async throws -> ModuleSource {
        try await #require(Tool("rustc")).runAside(
            ["--edition", "2021", "-D", "warnings", "-O", "--crate-type", "cdylib"]
                + ["-o", "\(folder.path)/\(library)", source])
        return .file("\(folder.path)/\(library)")
    }

    @Test func `The example adds up, replies from a thread, and hands over its total`() async throws {
        let bench = try await TestBench(build("\(repository)/Examples/Rust/tally.rs", "libTally.so"))
        let host = bench.host
        #expect(bench.log.contains { $0.module == "Tally" && $0.message == "Tally is ready." })
        #expect(try host.perform("Tally", "add") == 1)
        #expect(try await host.open("app://tally/4", origin: .remote) == 5)
        #expect(try await host.call("Tally", "reverse", ["über"]) == "rebü")
        let error = #expect(throws: PluginError.self) { try host.perform("Tally", "add", [.int(.max)]) }
        #expect(error?.code == "overflow" && error?.source == "Tally")
        try await bench.replace()
        #expect(try host.perform("Tally", "add") == 6)

        #expect(throws: PluginError.self) { try host.perform("Tally", "greet", ["Ada"]) }
        let greeter = Manifest("Greetings", version: "1.0.0") {
            Target("Greeter") { Action("greet", .required("name", String.self)) { name in "Hi, \(name)" } }
        }
        try await bench.add(.fake(greeter))
        #expect(try host.perform("Tally", "greet", ["Ada"]) == "Hi, Ada")
        let report = await bench.finish()
        #expect(report.isClean, "\(report)")
    }

    @Test func `The module of the article shouts`() async throws {
        let abi = try String(contentsOfFile: "\(repository)/Examples/Rust/abi.rs", encoding: .utf8)
        try folder.file("abi.rs", abi)
        try folder.file("loud.json", try #require(try Article("AModuleInRust").blocks("json").first))
        let source = try folder.file("loud.rs", try #require(try Article("AModuleInRust").blocks("rust").first))
        let bench = try await TestBench(build(source, "libLoud.so"))
        #expect(try bench.host.perform("Loud", "shout", ["hey"]) == "HEY")
    }
}

/// The declarations in Rust agree with the header. These tests need no Rust compiler.
@Suite struct RustDeclarationTests {
    @Test func `Sizes and offsets in Rust are those that the header asserts`() throws {
        let header = try ["plugin_abi.h", "plugin_abi/layout.h", "plugin_abi/log.h", "plugin_abi/manifest.h"].map {
            try String(contentsOfFile: "\(headers)/\($0)", encoding: .utf8)
        }
        .joined()
        let rust = try String(contentsOfFile: "\(repository)/Examples/Rust/abi.rs", encoding: .utf8)
        let names = [
            "plugin_string": "Str", "plugin_value": "Value", "plugin_entry": "Entry", "plugin_error": "Error",
            "plugin_call": "Call", "plugin_function": "Function", "plugin_module": "Module", "plugin_host": "Host",
            "plugin_log": "Log", "plugin_request": "Request",
        ]
        for (c, name) in names {
            let size = try #require(
                header.firstMatch(of: try Regex("ASSERT\\(sizeof\\(\(c)\\) == (\\d+)"))?[1].substring)
            #expect(rust.contains("assert!(size_of::<\(name)>() == \(size));"), "\(c)")
            #expect(rust.contains("pub struct \(name) {"), "\(c)")
        }
        let magic = try #require(header.firstMatch(of: /PLUGIN_ABI_MAGIC 0x(\w+)/)?.1)
        #expect(rust.replacing("_", with: "").contains("MAGIC: u64 = 0x\(magic);"))
        let seal = try #require(header.firstMatch(of: /PLUGIN_SEAL_MAGIC 0x(\w+)/)?.1)
        #expect(rust.replacing("_", with: "").contains("SEALMAGIC: u64 = 0x\(seal);"))
        let sealSize = try #require(header.firstMatch(of: /ASSERT\(sizeof\(plugin_seal\) == (\d+)/)?.1)
        #expect(rust.contains("assert!(size_of::<Seal<0>>() == \(sealSize));"))
        let section = try #require(header.firstMatch(of: /PLUGIN_SEAL_SECTION "(\w+)"/)?.1)
        #expect(rust.contains("link_section = \"\(section)\""))
        let major = try #require(header.firstMatch(of: /PLUGIN_ABI_MAJOR (\d+)/)?.1)
        #expect(rust.contains("MAJOR: u16 = \(major);"))
        let minor = try #require(header.firstMatch(of: /PLUGIN_ABI_MINOR (\d+)/)?.1)
        #expect(rust.contains("MINOR: u16 = \(minor);"))
    }
}
