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
                "Tests/HelloTests/HelloTests.swift",
            ])
        try SwiftSource.check([text("Hello/Sources/Hello/Hello.swift")], features: [])
        try SwiftSource.check([text("Hello/Tests/HelloTests/HelloTests.swift")], features: [])
        #expect(try text("Hello/README.md").split(separator: "\n", omittingEmptySubsequences: false).count <= 11)
    }

    @Test func `a package in C compiles, and its module does what its test says`() async throws {
        let outcome = try new("Hello", "--language", "c", "--at", "\(folder.path)/Hello", "--dependency", repository)
        #expect(outcome.code == 0, "\(outcome.errors)")
        let flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wno-unused-command-line-argument"]
        let test = try TestHost([CFixture.build(text("Hello/Sources/Hello/Hello.c"), flags)])
        #expect(try test.host.perform("Hello", "greet", ["name": "Ada"]) == "Hello, Ada!")
        #expect(try await test.host.open("app://hello/greet/Gr%C3%BC%C3%9Fe", origin: .remote) == "Hello, Grüße!")
        #expect(try test.host.url(for: "Hello.greet", ["name": "Ada"]) == "app://hello/greet/Ada")
        try SwiftSource.check([text("Hello/Tests/HelloTests/HelloTests.swift")], features: [])
    }

    @Test(arguments: ["swift", "c"])
    func `the package manifest refers to the dependency by a path or by a URL`(language: String) throws {
        #expect(
            try new("Near", "--language", language, "--at", "\(folder.path)/a/Near", "--dependency", repository).code
                == 0)
        let near = try text("a/Near/Package.swift")
        let path = try #require(near.firstMatch(of: /path: "([^"]*)"/)?.1)
        #expect(path.hasPrefix("../"))
        #expect(URL(filePath: "\(folder.path)/a/Near/\(path)").standardized.path == repository)
        let url = "https://example.com/somebody/plugin-host.git"
        #expect(try new("Far", "--language", language, "--at", "\(folder.path)/Far", "--dependency", url).code == 0)
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
