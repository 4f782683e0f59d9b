import Foundation
import PluginTestKit
import Testing

@testable import TestSupport

/// The code in the guide for module authors is built as the guide says, loaded and called.
@Suite struct GuideTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// Builds a Swift module from one file, with the library that SwiftPM has built beside the tests.
    private func swiftModule(_ source: String, _ name: String) async throws -> ModuleSource {
        let file = try folder.file("\(name)/\(name).swift", source)
        let library = "\(folder.path)/lib\(name).so"
        let objects = try ["PluginABI", "CPluginABI"].flatMap { target in
            try FileManager.default.contentsOfDirectory(atPath: built("\(target).build"))
                .filter { $0.hasSuffix(".o") }.map { built("\(target).build/\($0)") }
        }
        try await #require(Tool("swiftc")).runAside(
            SwiftSource.modules + ["-module-name", name, "-parse-as-library", "-emit-library", "-o", library, file]
                + objects + (sanitizer.map { ["-sanitize=\($0)"] } ?? []))
        return .file(library)
    }

    @Test func `The first module is a package, a source file and a test, and does what the article says`() async throws
    {
        let blocks = try Article("YourFirstModule").blocks("swift")
        let (package, source, test) = (blocks[0], blocks[1], blocks[2])
        #expect(package.hasPrefix("// swift-tools-version: 6.3") && test.contains("import Testing"))

        try folder.file("package/Package.swift", package.replacing("../PluginHost", with: repository))
        try folder.file("package/Sources/Greeter/Greeter.swift", source)
        try folder.file("package/Tests/GreeterTests/GreeterTests.swift", test)
        try await #require(Tool("swift")).runAside(
            ["package", "--disable-sandbox", "--package-path", "\(folder.path)/package", "dump-package"])

        let bench = try await TestBench(await swiftModule(source, "Greeter"))
        #expect(try bench.host.perform("Greeter", "greet", ["name": "Ada"]) == "Hello, Ada!")
        #expect(try await bench.host.open("app://greet/Ada?times=2", origin: .remote) == "Hello, Ada! Hello, Ada!")
        let error = #expect(throws: PluginError.self) { try bench.host.perform("Greeter", "greet", ["Ada", 0]) }
        #expect(error?.code == "tooFew")
        let report = await bench.finish()
        #expect(report.isClean, "\(report)")
    }

    @Test func `A module with objects reads items one by one, and releases its callbacks`() async throws {
        let source = try #require(try Article("Objects").blocks("swift").first)
        let bench = try await TestBench(await swiftModule(source, "Library"))
        do {
            let cursor = try #require(try bench.host.perform("Library", "search", ["text": "U"]).object)
            #expect(
                try [cursor.perform("next"), cursor.perform("next"), cursor.perform("next")] == [
                    "Ulysses", "Utopia", nil,
                ])
            try bench.host.perform(
                "Library", "watch", [.object(bench.host.callback { _ throws -> Value in .null }.object)])
        }
        let report = await bench.finish()
        #expect(report.isClean, "\(report)")
    }

    @Test func `State is handed over from build to build, and from the previous version`() async throws {
        let source = try #require(try Article("StateAcrossReplacement").blocks("swift").first)
        let module = try await swiftModule(source, "Visits")
        // The fixture is version 1.0 of the article: it hands over a number.
        let bench = try await TestBench(.product("Visits"))
        #expect(try bench.host.perform("Visits", "count") == 1)
        try await bench.replace(with: module)
        #expect(try bench.host.perform("Visits", "count") == 2)
        #expect(bench.log.contains { $0.message == "Continues with 1, from version 1.0.0." })
        try await bench.replace()
        #expect(try bench.host.perform("Visits", "count") == 3)
    }

    @Test(arguments: [
        "YourFirstModule", "Objects", "StateAcrossReplacement", "Threads", "Errors", "ValuesAndLifetimes",
        "TypesInTheManifest", "ServicesRoutesAndEvents", "Configuration", "PluginABI", "PluginTestKit",
    ])
    func `Every piece of Swift in the guide compiles`(article: String) async throws {
        let library = article == "PluginTestKit" ? article : "PluginABI"
        let blocks = try Article(article, of: library).blocks("swift").filter { block in
            !block.contains("import PackageDescription") && !block.hasPrefix(".testTarget")
        }
        let files = try blocks.enumerated().map { number, block in
            try folder.file("\(article)/\(number).swift", Snippet(block).file)
        }
        let swiftc = try #require(Tool("swiftc"))
        for file in files {
            try await swiftc.runAside(SwiftSource.modules + ["-typecheck", "-parse-as-library", file])
        }
        #expect(!files.isEmpty)
    }
}
