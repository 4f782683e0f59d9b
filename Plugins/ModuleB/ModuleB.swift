import PluginABI
import Synchronization

/// Formats, greets, calls back later, and notes what is sold.
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
                try await Task.sleep(for: .milliseconds(milliseconds))
                return String(text.reversed())
            }
            .remote().summary("Takes its time, without blocking a thread.")

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
            .summary("Calls what was remembered, and lets go of it.")

            Action("advertise", .context(), .required("key", String.self)) { context, key in
                let detail = try context.service(ModuleAFacade.HomeServiceClient.self).fetchDetail(key: key)
                return "Look: \(detail["title"]?.string ?? key)!"
            }
            .summary("Uses whatever implements the HomeService.")

            Action("sum", .required("data", UnsafeRawBufferPointer.self)) { data in
                data.reduce(0) { $0 &+ Int($1) }
            }
            .summary("Adds up bytes where they lie.")

            Action("basket", .context()) { context in try context.object("Basket", BasketPage()) }
                .remote().summary("A page that collects what is chosen on the pages above it.")
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

// As a part of a program it is found by this record, as a shared library by the symbol.
@section("plugin_modules") @used
private let record: ModuleRecord = { ModuleB.export() }

#if !PLUGIN_LINKED_IN
    @_cdecl("plugin_module_entry")
    public func entry() -> UnsafePointer<plugin_module> { ModuleB.export() }
#endif

let remembered = Mutex<[Callback]>([])
