/// The source of a test for a new module in any language. It loads the built library as a host does.
enum TestTemplate {
    /// The product that the test depends on.
    static let library = "PluginTestKit"

    static func source(_ name: ModuleName) -> String {
        """
        import PluginTestKit
        import Testing

        @Test func `it greets by name`() async throws {
            let bench = try await TestBench(.product("\(name.text)"))
            #expect(try bench.host.perform("\(name.text)", "greet", ["name": "Ada"]) == "Hello, Ada!")
        }

        @Test func `a URL reaches it, also from another program`() async throws {
            let bench = try await TestBench(.product("\(name.text)"))
            #expect(try await bench.host.open("app://\(name.host)/greet/Ada", origin: .remote) == "Hello, Ada!")
        }

        @Test func `it can be replaced, and leaves nothing behind`() async throws {
            let bench = try await TestBench(.product("\(name.text)"))
            try await bench.replace()
            #expect(try bench.host.perform("\(name.text)", "greet", ["Ada"]) == "Hello, Ada!")
            let report = await bench.finish()
            #expect(report.isClean, "\\(report)")
        }

        """
    }
}
