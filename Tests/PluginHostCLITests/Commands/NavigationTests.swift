import Foundation
import Glibc
import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

/// `pluginhost run --navigate`, with the sample modules and commands from a pipe.
@Suite(.timeLimit(.minutes(30))) struct NavigationTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        for module in ["ModuleA", "ModuleB"] {
            try copyFile(
                built("lib\(module).so"), to: "\(folder.path)/\(module).so")
        }
    }

    private func navigate(_ commands: String..., options: [String] = []) throws -> ProgramProcess.Outcome {
        try ProgramProcess(
            ["run", "--navigate", "--plugins", folder.path] + options,
            input: commands.map { $0 + "\n" }.joined()
        ).wait()
    }

    /// The output from the first page on.
    private func pages(_ outcome: ProgramProcess.Outcome) -> [String] {
        let lines = outcome.output.split(separator: "\n").map(String.init)
        return Array(lines.drop { !$0.hasPrefix("[") }.prefix { !$0.hasSuffix("Stopping") })
    }

    @Test func `Pages are opened, shown, used and closed`() throws {
        let outcome = try navigate(
            "open app://basket", "push app://shop/article/pear note=ripe", "do choose", "pop", "quit")
        #expect(outcome.code == 0 && outcome.errors.split(separator: "\n").allSatisfy { !$0.contains("Error") })
        #expect(
            pages(outcome) == [
                "[Basket]", "Basket", "0 chosen", "[Basket > Article]", "pear", "0.6", "  ripe", "true", "[Basket]",
                "Basket", "1 chosen", "  pear", "closed app://shop/article/pear: true",
            ])
    }

    @Test func `Layers are presented and dismissed, and the program ends with its input`() throws {
        let outcome = try navigate(
            "open B/basket", "do look key=apple", "present app://shop/article/pear", "stack A/article key=apricot",
            "dismiss 2", "root", "root", "show", "emit shop.choose key=x", "emit nothing.else", "dismiss", "show")
        let paths = pages(outcome).filter { $0.hasPrefix("[") || $0.hasPrefix("No page") || $0.contains("handle") }
        #expect(
            paths == [
                "[Basket]", "[Basket > Article]", "[Basket > Article | Article]",
                "[Basket > Article | Article | Article]",
                "[Basket > Article]", "[Basket]", "[Basket]", "[Basket]",
                "handled by Basket#handle.shop.choose of ModuleB", "not handled", "No page is open.",
                "No page is open.",
            ])
        #expect(outcome.code == 0)
    }

    @Test func `A command that fails is reported, and the next one is read`() throws {
        let outcome = try navigate(
            "push app://basket", "pop", "dismiss", "open app://shop/article/lead", "open app://A/nativeSecret",
            "opne app://basket", "open basket", "pop x", "do choose", "open 'x", "open app://basket")
        for code in ["noStack", "nothingToClose", "pageRefused", "noRoute", "pageNotOpen"] {
            #expect(outcome.errors.contains("(\(code))"), "\(code)")
        }
        #expect(outcome.errors.contains("There is no command 'opne'. Did you mean"))
        #expect(outcome.errors.contains("'basket' is not a page") && outcome.errors.contains("'x' is not a number"))
        #expect(pages(outcome).first == "[Basket]" && outcome.code == 0)
    }

    @Test func `For programs, all output is JSON, line by line`() throws {
        let outcome = try navigate(
            "open app://basket", "emit shop.choose key=pear", "pop", "do nothing", "dismiss", options: ["--json"])
        let lines = outcome.output.split(separator: "\n").compactMap { try? Value(json: String($0)) }
        #expect(lines.count == outcome.output.split(separator: "\n").count)
        let shown = lines.filter { $0["layers"] != nil }
        #expect(shown.first?["content"]?["title"] == "Basket")
        #expect(shown.first?["layers"]?[0]?["pages"]?[0] == ["type": "Basket", "module": "ModuleB"])
        #expect(shown.last?["content"] == .null && shown.last?["layers"] == [])
        #expect(lines.contains { $0["handled"] == true })
        #expect(lines.contains { $0["error"]?["code"] == "nothingToClose" })
        #expect(lines.contains { $0["closed"] == "app://basket" && $0["backData"] == ["pear"] })
    }
}
