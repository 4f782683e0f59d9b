import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

@Suite(.timeLimit(.minutes(30))) struct NewModuleTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func new(_ arguments: String...) throws -> ProgramProcess.Outcome {
        var program = try HostProgram()
        program.namesFolder = false
        return try program.run(["new"] + arguments)
    }

    private func text(_ path: String) throws -> String {
        try String(contentsOfFile: "\(folder.path)/\(path)", encoding: .utf8)
    }

    @Test func `a package in Swift has all of its files, and they compile`() throws {
        let outcome = try new("Hello", "--at", "\(folder.path)/Hello", "--dependency", repository)
        #expect(outcome.code == 0, "\(outcome.errors)")
        let files = outcome.output.split(separator: "\n").map { $0.replacing("\(folder.path)/Hello/", with: "") }
        #expect(
            files.sorted() == [
                ".gitignore", "Package.swift", "README.md", "Sources/Hello/Hello.swift",
                "Tests/HelloTests/HelloTests.swift", "exports.map",
            ])
        // Such flags would also apply to each program that links the target.
        #expect(try !text("Hello/Package.swift").contains("linkerSettings"))
        for flag in ["-s -Xlinker --version-script=exports.map", "-function-sections", "-internalize-at-link"] {
            #expect(try text("Hello/README.md").contains(flag))
        }
        #expect(try text("Hello/exports.map").contains("global: plugin_module_entry;"))
        try SwiftSource.check([text("Hello/Sources/Hello/Hello.swift")], features: [])
        try SwiftSource.check([text("Hello/Tests/HelloTests/HelloTests.swift")], features: [])
        #expect(try text("Hello/README.md").split(separator: "\n", omittingEmptySubsequences: false).count <= 15)
    }

    /// The compilers on this machine, with the language of the template.
    static let compilers = [("c", "gcc"), ("c", "clang"), ("c++", "g++"), ("c++", "clang++")].filter {
        Tool($0.1) != nil
    }

    @Test(.enabled(if: Tool("make") != nil, "There is no make on this machine."), arguments: compilers)
    func `a module in C or C++ is built by make, again when its manifest changes, and loads`(
        language: String, compiler: String
    ) async throws {
        let path = "\(folder.path)/Hello"
        let clone = "\(folder.path)/it's a #clone for $HOME"
        try FileManager.default.createSymbolicLink(atPath: clone, withDestinationPath: repository)
        let outcome = try new("Hello", "--language", language, "--at", path, "--dependency", clone)
        #expect(outcome.code == 0, "\(outcome.errors)")
        let make = try #require(Tool("make"))
        let flags = "FLAGS=-O2 -Wall -Wextra -Wpedantic -Werror"
        let arguments = ["-C", path, "CC=\(compiler)", "CXX=\(compiler)", "C\(flags)", "CXX\(flags)"]
        try make.run(arguments)
        #expect(try make.run(arguments).contains("up to date"))
        try await checkHello("\(path)/build/libHello.so")

        let json = "\(path)/Hello.json"
        let changed = try String(contentsOfFile: json, encoding: .utf8).replacing("Greets", with: "Welcomes")
        try changed.write(toFile: json, atomically: true, encoding: .utf8)
        try make.run(arguments)
        let library = try Data(contentsOf: URL(filePath: "\(path)/build/libHello.so"))
        #expect(library.firstRange(of: Data(changed.utf8)) != nil)
        try FileManager.default.removeItem(atPath: json)
        #expect(throws: Tool.Failed.self) { try make.run(arguments) }
    }

    @Test(.enabled(if: Tool("make") != nil && Tool("g++") != nil, "There is no make or no g++ on this machine."))
    func `make test checks a module in C++, and calls it`() async throws {
        let path = "\(folder.path)/Hello"
        #expect(try new("Hello", "--language", "c++", "--at", path, "--dependency", repository).code == 0)
        let output = try #require(Tool("make")).run(["-C", path, "test", "PLUGINHOST=\(built("pluginhost"))"])
        #expect(output.contains("Hello, Ada!"))
        try #require(Tool("make")).run(["-C", path, "install", "PLUGINS=\(folder.path)/plugins"])
        #expect(FileManager.default.fileExists(atPath: "\(folder.path)/plugins/libHello.so"))
    }

    @Test(.enabled(if: Tool("cargo") != nil, "There is no cargo on this machine."))
    func `a module in Rust is built and tested by cargo, again when its manifest changes, and loads`() async throws {
        let path = "\(folder.path)/Hello"
        let outcome = try new("Hello", "--language", "rust", "--at", path, "--dependency", repository)
        #expect(outcome.code == 0, "\(outcome.errors)")
        let cargo = try #require(Tool("env"))
        let arguments = ["PLUGINHOST=\(built("pluginhost"))", "RUSTFLAGS=-D warnings", "cargo"]
        let options = ["--offline", "--manifest-path", "\(path)/Cargo.toml"]
        let output = try cargo.run(arguments + ["test"] + options)
        #expect(output.contains("2 passed"), "\(output)")
        try cargo.run(arguments + ["build"] + options)
        try await checkHello("\(path)/target/debug/libHello.so")

        let json = "\(path)/src/Hello.json"
        let changed = try String(contentsOfFile: json, encoding: .utf8).replacing("Greets", with: "Welcomes")
        try changed.write(toFile: json, atomically: true, encoding: .utf8)
        try cargo.run(arguments + ["build"] + options)
        let library = try Data(contentsOf: URL(filePath: "\(path)/target/debug/libHello.so"))
        #expect(library.firstRange(of: Data(changed.utf8)) != nil)
    }

    /// Loads the built module, and calls it.
    private func checkHello(_ library: String) async throws {
        #expect(try ProgramProcess.run("inspect", "--json", library).json?["sealed"] == true)
        let test = try TestHost([library])
        #expect(try test.host.perform("Hello", "greet", ["name": "Ada"]) == "Hello, Ada!")
        #expect(try await test.host.open("app://hello/greet/Gr%C3%BC%C3%9Fe", origin: .remote) == "Hello, Grüße!")
        #expect(try test.host.url(for: "Hello.greet", ["name": "Ada"]) == "app://hello/greet/Ada")
    }

    @Test(arguments: ["c", "c++", "rust"])
    func `modules in other languages need a folder, not a URL`(language: String) throws {
        let far = try new(
            "Far", "--language", language, "--at", "\(folder.path)/Far", "--dependency", "https://x.org/y")
        #expect(far.code == 64 && far.errors.contains("needs"), "\(far.errors)")
        try folder.folder("other")
        try folder.file("other/Package.swift", "")
        let other = try new(
            "Far", "--language", language, "--at", "\(folder.path)/Far", "--dependency", "\(folder.path)/other")
        #expect(other.code == 66 && other.errors.contains("is missing"), "\(other.errors)")
        #expect(!FileManager.default.fileExists(atPath: "\(folder.path)/Far"))
    }

    @Test func `a program outside of a clone and of an installation says what to pass`() throws {
        try folder.copy(built("pluginhost"), as: "pluginhost")
        let outcome = try ProgramProcess(
            ["new", "Hello", "--at", "\(folder.path)/Hello"], program: "\(folder.path)/pluginhost"
        ).wait()
        #expect(outcome.code == 64 && outcome.errors.contains("'--dependency PATH'"), "\(outcome.errors)")
    }

    @Test func `the package manifest refers to the dependency by a path or by a URL`() throws {
        #expect(try new("Near", "--at", "\(folder.path)/a/Near", "--dependency", repository).code == 0)
        let near = try text("a/Near/Package.swift")
        let path = try #require(near.firstMatch(of: /path: "([^"]*)"/)?.1)
        #expect(path.hasPrefix("../"))
        #expect(URL(filePath: "\(folder.path)/a/Near/\(path)").standardized.path == repository)
        let url = "https://example.com/somebody/plugin-host.git"
        #expect(try new("Far", "--at", "\(folder.path)/Far", "--dependency", url).code == 0)
        let far = try text("Far/Package.swift")
        #expect(far.contains(".package(url: \"\(url)\"") && far.contains("package: \"plugin-host\""))
        for manifest in [near, far] {
            try SwiftSource.checkSyntax(manifest)
            #expect(!manifest.contains(folder.path))
        }
    }

    @Test func `the default dependency is the clone that the program was built in`() throws {
        #expect(try new("Hello", "--at", "\(folder.path)/Hello").code == 0)
        #expect(try text("Hello/Package.swift").contains(".package(name: \"PluginHost\", path: \"../"))
    }

    @Test func `nothing is overwritten`() throws {
        try folder.folder("Hello")
        try folder.file("Hello/mine.txt", Data("mine".utf8))
        let outcome = try new("Hello", "--at", "\(folder.path)/Hello", "--dependency", repository)
        #expect(outcome.code == 73 && outcome.errors.contains("already exists"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(folder.path)/Hello") == ["mine.txt"])
        try folder.file("File")
        #expect(try new("Hello", "--at", "\(folder.path)/File", "--dependency", repository).code == 73)
        try folder.folder("Empty")
        #expect(try new("Hello", "--at", "\(folder.path)/Empty", "--dependency", repository).code == 0)
    }

    @Test(arguments: [
        ("my-module", "Try 'Mymodule'"), ("1st", "Try 'St'"), ("", "not a valid"), ("Ünique", "not a valid"),
        ("class", "Try 'classModule'"), ("entry", "Try 'entryModule'"),
        ("Synchronization", "Try 'SynchronizationModule'"), ("plugin_module", "Try 'plugin_moduleModule'"),
        ("Module", "Try 'ModuleModule'"), ("../x", "not a valid"),
    ])
    func `an invalid name is refused, with a valid one as a suggestion`(name: String, words: String) throws {
        let outcome = try new("--at", "\(folder.path)/x", "--dependency", repository, "--", name)
        #expect(outcome.code == 64 && outcome.errors.contains(words), "\(outcome.errors)")
        #expect(!FileManager.default.fileExists(atPath: "\(folder.path)/x"))
    }

    @Test func `an unknown language and an invalid dependency are refused`() throws {
        #expect(try new("X", "--language", "cobol", "--at", "\(folder.path)/x", "--dependency", repository).code == 64)
        #expect(try new("X", "--at", "\(folder.path)/x", "--dependency", folder.path).code == 66)
    }
}
