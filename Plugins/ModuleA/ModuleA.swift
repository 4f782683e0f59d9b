import PluginABI

/// A shop: pages with details, prices that it asks module B for, and a counter.
struct ModuleA: Module {
    static let manifest = Manifest("ModuleA", version: "1.0.0") {
        Target("A") {
            Action("fetchDetail", .required("key", String.self), .optional("page", Int.self, default: 1)) { key, page in
                Detail(title: "Detail of \(key)", page: page)
            }
            .remote()

            Action("nativeSecret") { "only for this program" }

            Action("price", .context(), .required("key", String.self)) { context, key in
                try context.perform("B", "format", ["amount": .double(prices[key] ?? 0), "currency": "EUR"])
            }
            .remote().summary("Asks B, which asks A for the name of the currency.")

            Action("currencyName", .required("code", String.self)) { code in
                guard let name = currencies[code] else {
                    throw PluginError("unknownCurrency", "There is no currency with the code “\(code)”.")
                }
                return name
            }

            Action("notFound", .required("action", String.self), .required("parameters", Value.self)) { action, _ in
                "A has no page called “\(action)”"
            }
        }
        .summary("The shop's pages")

        Target("Counter", make: Counter.init) {
            Action("add", .instance(), .required("n", Int.self)) { counter, n in counter.add(n) }
            Action("search", .context(), .required("text", String.self)) { context, text in
                try context.object("Cursor", Cursor(prices.keys.filter { $0.contains(text) }.sorted()))
            }
        }

        Route("app://shop/detail/:key/:page(\\d+)?", to: "A/fetchDetail")
            .named("detail").summary("The page of one article")
        Route("app://shop/price/:key", to: "A/price")

        Service("HomeService", version: "1.2.0", target: "A").summary("What the shop shows")

        ObjectType("Cursor", Cursor.self) {
            Action("next", .instance()) { cursor in cursor.next() }
        }

        On(.setUp) { context in context.log(.info, "The shop is open.") }
        On(.tearDown) { context in context.log(.info, "The shop is closed.") }
    }
}

@_cdecl("plugin_module_entry")
public func entry() -> UnsafePointer<plugin_module> { ModuleA.export() }

struct Detail: ValueCodable {
    var title: String
    var page: Int
}

let prices = ["apple": 0.5, "apricot": 0.75, "pear": 0.6]
let currencies = ["EUR": "euro", "CHF": "franc"]
