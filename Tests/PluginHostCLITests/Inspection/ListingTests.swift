import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

@Suite(.timeLimit(.minutes(30))) struct ListingTests {
    @Test func `inspect lists signatures, and everything with --all`() throws {
        let list = try ProgramProcess.run("inspect", "--trust", built("libModuleA.so"))
        #expect(list.code == 0)
        let lines = list.output.split(separator: "\n").map(String.init)
        #expect(lines.first == "ModuleA 1.0.0")
        for line in [
            "TARGET A: The shop's pages", "  price(key: string) -> string                      remote",
            "      Calls B, which calls A for the name of the currency.", "TARGET Counter: instance shared",
            "TYPE Cursor", "HOOKS: setUp, tearDown",
            "  app://shop/offer -> A/fetchDetail key=apple page=7",
        ] { #expect(lines.contains(line), "\(line)\n\(list.output)") }
        #expect(lines.contains { $0.hasPrefix("  fetchDetail(key: string, page: int = 1) -> ") })
        #expect(lines.contains { $0.hasPrefix("  article(key: string, note: string?) -> Article") })
        #expect(lines.count < 60)
        let all = try ProgramProcess.run("inspect", "--trust", "--all", built("libModuleA.so"))
        #expect(all.output.contains("\nelf:\n"))
    }

    @Test func `a listing shows what a manifest can have`() throws {
        let report = try Value(
            json: #"""
                {"file": "m.so", "toolchain": "clang", "abi": {"major": 1, "minor": 2}, "elf": {"size": 2048},
                "manifest": {"name": "M", "version": "2.0.0", "summary": "All of it", "concurrency": "serial",
                "exclusive": true, "stateless": true, "hooks": ["setUp", {"name": "init", "async": true}],
                "requires": [{"module": "N", "version": "^1.2"}, {"service": "S", "optional": true}],
                "services": [{"name": "S", "version": "1.0.0", "target": "T", "singleton": true}],
                "events": [{"name": "shop.sold", "parameters": [{"name": "a\u001b", "type": "list"}], "result": "null"}],
                "targets": [{"name": "T", "actions": [{"name": "a", "async": true, "rest": true, "remote": true,
                "demands": ["pay"], "result": "null", "parameters": [{"name": "p", "required": true}]}]}]}}
                """#)
        let expected = #"""
            M 2.0.0                                           All of it
            m.so (clang, interface 1.2, 2.0 KiB)
            concurrency serial, exclusive, stateless

            TARGET T
              a(p: any, ...) async                              remote, demands pay

            SERVICES
              S 1.0.0 by T, singleton

            SUBSCRIPTIONS
              shop.sold(a\u{1b}: list?)

            REQUIRES
              module N ^1.2
              service S, optional

            HOOKS: setUp, init
            """#
        #expect(ManifestListing(report).text == expected)
    }
}
