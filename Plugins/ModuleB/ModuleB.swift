import PluginABI
import Synchronization

/// Formats, greets, and calls back later.
struct ModuleB: Module {
    static let manifest = Manifest("ModuleB", version: "1.2.0") {
        Target("B") {
            Action("greet", .required("name", String.self)) { name in "Hello, \(name)!" }
                .remote()

            Action("format", .context(), .required("amount", Double.self), .required("currency", String.self)) {
                context, amount, currency in
                let name = try context.perform("A", "currencyName", ["code": .string(currency)]).get(String.self)
                return "\(amount) \(name)"
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
                "Look: \(try context.service(HomeClient.self).title(of: key))!"
            }
            .summary("Uses whatever implements the HomeService.")

            Action("sum", .required("data", UnsafeRawBufferPointer.self)) { data in
                data.reduce(0) { $0 &+ Int($1) }
            }
            .summary("Adds up bytes where they lie.")
        }
    }
}

@_cdecl("plugin_module_entry")
public func entry() -> UnsafePointer<plugin_module> { ModuleB.export() }

/// The HomeService, as far as this module uses it.
struct HomeClient: ServiceClient {
    static let serviceName = "HomeService"
    static let minimumVersion: String? = "1.2.0"
    let service: ServiceHandle

    init(_ service: ServiceHandle) { self.service = service }

    func title(of key: String) throws -> String {
        try service.perform("fetchDetail", ["key": .string(key)])["title"]?.string ?? key
    }
}

let remembered = Mutex<[Callback]>([])
