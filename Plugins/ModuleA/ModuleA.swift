import PluginABI

/// A shop: pages with details, prices in the currency of its configuration, sales as events, and a counter.
struct ModuleA: Module {
    static let manifest = Manifest("ModuleA", version: "1.0.0") {
        Target("A") {
            Action("fetchDetail", .required("key", String.self), .optional("page", Int.self, default: 1)) { key, page in
                Detail(title: "Detail of \(key)", page: page)
            }
            .remote()

            Action("nativeSecret") { "only for this program" }

            Action("price", .context(), .required("key", String.self)) { context, key in
                let currency = context.configuration["currency"]?.string ?? "EUR"
                return try ModuleBFacade.B(context).format(amount: prices[key] ?? 0, currency: currency)
            }
            .remote().summary("Calls B, which calls A for the name of the currency.")

            Action("buy", .context(), .required("key", String.self)) { context, key in
                try context.post("shop.sold", ["item": .string(key)]).delivered
            }
            .summary("Posts shop.sold, and returns the number of subscribers that received it.")

            Action("currencyName", .required("code", String.self)) { code in
                guard let name = currencies[code] else {
                    throw PluginError("unknownCurrency", "There is no currency with the code “\(code)”.")
                }
                return name
            }

            Action(
                "article", .context(), .required("key", String.self), .optional("note", String.self)
            ) { context, key, _ in try context.object(ArticlePage(key)) }
            .remote().summary("The page of one article, to be shown by a navigator.")

            Action("notFound", .required("action", String.self), .required("parameters", Value.self)) { action, _ in
                "A has no page called “\(action)”"
            }
        }
        .summary("The shop's pages")

        Target("Counter", make: Counter.init) {
            Action("add", .instance(), .required("n", Int.self)) { counter, n in counter.add(n) }
            Action("search", .context(), .required("text", String.self)) { context, text in
                try context.object(Cursor(prices.keys.filter { $0.contains(text) }.sorted()))
            }
        }

        Route("app://shop/detail/:key/:page(\\d+)?", to: "A/fetchDetail")
            .named("detail").summary("The page of one article")
        Route("app://shop/price/:key", to: "A/price")
        Route("app://shop/article/:key", to: "A/article").summary("The page of one article, with a price")
        Route("app://shop/offer", to: "A/fetchDetail", defaults: ["key": "apple", "page": 7])

        Service("HomeService", version: "1.2.0", target: "A").summary("What the shop shows")

        ObjectType("Cursor", Cursor.self) {
            Action("next", .instance()) { cursor in cursor.next() }
        }

        Page("Article", ArticlePage.self) {
            Action.property("note", String.self) { page, note in page.note(note) }
            Action.shouldOpen { page, _ in prices[page.key] != nil }
            Action.content { page in page.content }
            Action("choose", .instance(), .context()) { page, context in try page.choose(context) }
                .summary("Emits shop.choose to the pages below, the module and the program.")
            Action.backData { page in page.isChosen }
        }

        On(.setUp) { context in context.log(.info, "The shop is open.") }
        On(.tearDown) { context in context.log(.info, "The shop is closed.") }
    }
}

// A program that the module is linked into finds it by this record; a host that loads the file, by the symbol.
@section("plugin_modules") @used
private let record: ModuleRecord = { ModuleA.export() }

#if !PLUGIN_LINKED_IN
    @_cdecl("plugin_module_entry")
    public func entry() -> UnsafePointer<plugin_module> { ModuleA.export() }
#endif

struct Detail: ValueCodable {
    var title: String
    var page: Int
}

let prices = ["apple": 0.5, "apricot": 0.75, "pear": 0.6]
let currencies = ["EUR": "euro", "CHF": "franc"]
