import PluginABI
import Synchronization

/// Formats amounts, greets, calls callbacks later, and logs sales.
struct ModuleB: Module {
    static let manifest = Manifest("ModuleB", version: "1.2.0") {
        Target("B") {
            Action("greet", .required("name", String.self)) { name in "Hello, \(name)!" }
                .remote()

            Action("format", .context(), .required("amount", Double.self), .required("currency", String.self)) {
                context, amount, currency in
                "\(amount) \(try ModuleAFacade.A(context).currencyName(code: currency))"
            }

            Action("slowly", .required("text", String.self), .optional("milliseconds", Int.self, default: 20)) {
                text, milliseconds in
                try await Task.sleep(for: .milliseconds(min(milliseconds, 5_000)))
                return String(text.reversed())
            }
            .remote().summary("Replies after a delay of at most five seconds, without blocking a thread.")

            Action("remember", .required("callback", Callback.self)) { callback in
                remembered.withLock { $0.append(callback) }
            }

            Action("callBack", .required("text", String.self)) { text in
                let callbacks = remembered.withLock { callbacks in
                    defer { callbacks = [] }
                    return callbacks
                }
                for callback in callbacks { try await callback(.string(text)) }
                return callbacks.count
            }
            .summary("Calls the remembered callbacks, and releases them.")

            Action("advertise", .context(), .required("key", String.self)) { context, key in
                let detail = try context.service(ModuleAFacade.HomeServiceClient.self).fetchDetail(key: key)
                return "Look: \(detail.title)!"
            }
            .summary("Uses the module that offers HomeService.")

            Action("sum", .required("data", UnsafeRawBufferPointer.self)) { data in
                data.reduce(0) { $0 &+ Int($1) }
            }
            .summary("Adds up bytes without copying them.")

            Action("basket", .context()) { context in try context.object(BasketPage()) }
                .remote().summary("A page that collects the articles chosen on the pages above it.")
        }

        Page("Basket", BasketPage.self) {
            Action.content { basket in basket.content }
            Action.handle("shop.choose") { basket, event in
                basket.add(event["key"]?.string ?? "?")
                return .handled
            }
            Action("look", .context(), .required("key", String.self)) { context, key in
                try await context.call("navigator", "push", ["url": .string("app://shop/article/\(key)")])
            }
            .summary("Opens the page of an article on top of this one.")
            Action.backData { basket in basket.items }
        }
        Route("app://basket", to: "B/basket")

        Subscribe {
            Action("shop.sold", .context(), .required("item", String.self)) { context, item in
                context.log(.info, "Sold: \(item)")
            }
        }
    }
}

// A program that the module is linked into finds it by this record; a host that loads the file, by the symbol.
@section("plugin_modules") @used
private let record: ModuleRecord = { ModuleB.export() }

#if !PLUGIN_LINKED_IN
    @_cdecl("plugin_module_entry")
    public func entry() -> UnsafePointer<plugin_module> { ModuleB.export() }
#endif

let remembered = Mutex<[Callback]>([])
