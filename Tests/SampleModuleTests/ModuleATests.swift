import PluginTestKit
import Testing

/// The shop module with fake peers: its calls, events and answers.
@Suite struct ModuleATests {
    /// A fake of ModuleB that formats without calling back.
    private let formats = Manifest("Formats", version: "1.0.0") {
        Target("B") {
            Action("format", .required("amount", Double.self), .required("currency", String.self)) { amount, currency in
                "\(amount) \(currency)"
            }
        }
    }

    @Test func `A page is found by name, by position, by URL and as a service`() async throws {
        let bench = try await TestBench(.product("ModuleA"))
        let detail: Value = ["title": "Detail of lamp", "page": 2]
        #expect(try bench.host.perform("A", "fetchDetail", ["key": "lamp", "page": 2]) == detail)
        #expect(try bench.host.perform("A", "fetchDetail", ["lamp", 2]) == detail)
        #expect(try await bench.host.open("app://shop/detail/lamp/2", origin: .remote) == detail)
        #expect(try bench.host.service("HomeService", from: "1.2.0").perform("fetchDetail", ["lamp", 2]) == detail)
        #expect(try bench.host.bind("A", "fetchDetail").perform(["lamp", 2]) == detail)
    }

    @Test func `An action that is not remote cannot be reached from outside`() async throws {
        let bench = try await TestBench(.product("ModuleA"))
        #expect(try bench.host.perform("A", "nativeSecret") == "only for this program")
        let error = #expect(throws: PluginError.self) { try bench.host.open("app://A/nativeSecret", origin: .remote) }
        #expect(error?.code == .noRoute)
    }

    @Test(arguments: [("EUR", [:]), ("CHF", ["currency": "CHF"])] as [(String, Value)])
    func `A price is formatted in the currency of the configuration`(
        currency: String, configuration: Value
    ) async throws {
        let bench = try await TestBench(.product("ModuleA"), peers: .fake(formats)) {
            $0.moduleConfiguration["ModuleA"] = configuration
        }
        let asked = bench.record(.action("B", "format"))
        #expect(try bench.host.perform("A", "price", ["key": "apple"]) == .string("0.5 \(currency)"))
        #expect(asked.calls.map(\.parameters) == [["amount": 0.5, "currency": .string(currency)]])
    }

    @Test func `Without a formatter there is no price, and the error names what is missing`() async throws {
        let bench = try await TestBench(.product("ModuleA"))
        let error = #expect(throws: PluginError.self) { try bench.host.perform("A", "price", ["key": "apple"]) }
        #expect(error?.code == .unknownTarget)
    }

    @Test func `A sale is posted to all subscribers`() async throws {
        let bench = try await TestBench(.product("ModuleA"))
        let sold = bench.listen(to: "shop.sold")
        #expect(try bench.host.perform("A", "buy", ["key": "apple"]) == 1)
        #expect(sold.events == [["item": "apple"]])
    }

    @Test func `A search is an object from which results are read one by one`() async throws {
        let bench = try await TestBench(.product("ModuleA"))
        do {
            let cursor = try #require(try bench.host.perform("Counter", "search", ["text": "ap"]).object)
            #expect(try cursor.perform("next") == "apple")
            #expect(try cursor.perform("next") == "apricot")
            #expect(try cursor.perform("next").isNull)
        }
        let report = await bench.finish()
        #expect(report.isClean, "\(report)")
    }

    @Test func `The module logs when the shop opens and closes`() async throws {
        let bench = try await TestBench(.product("ModuleA"))
        let report = await bench.finish()
        #expect(report.isClean, "\(report)")
        #expect(
            bench.log.filter { $0.module == "ModuleA" }.map(\.message) == ["The shop is open.", "The shop is closed."])
    }
}
