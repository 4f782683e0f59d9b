// swift-format-ignore-file
// Made by `pluginhost facade` from the manifest of ModuleB 1.2.0.
// Do not change it by hand: make it again when the module has changed.

import PluginABI

/// Calls of ModuleB 1.2.0 that the compiler checks, in modules and in programs.
enum ModuleBFacade {
    /// The actions of the target `B`.
    struct B: Sendable {
        /// What the calls go through.
        let caller: any Caller
        /// How long each call may take. Default: what the host says.
        var timeout: Duration?

        init(_ caller: any Caller, timeout: Duration? = nil) {
            self.caller = caller
            self.timeout = timeout
        }

        /// Performs `greet`.
        @discardableResult
        func greet(name: String) throws(PluginError) -> String {
            try caller.perform("B", "greet", ["name": .string(name)], timeout: timeout).result(of: "B/greet")
        }

        /// Performs `format`.
        @discardableResult
        func format(amount: Double, currency: String) throws(PluginError) -> String {
            try caller.perform("B", "format", ["amount": .double(amount), "currency": .string(currency)], timeout: timeout).result(of: "B/format")
        }

        /// Takes its time, without blocking a thread.
        ///
        /// Performs `slowly`.
        @discardableResult
        func slowly(text: String, milliseconds: Int = 20) async throws(PluginError) -> String {
            try await caller.call("B", "slowly", ["text": .string(text), "milliseconds": .int(milliseconds)], timeout: timeout).result(of: "B/slowly")
        }

        /// Performs `remember`.
        func remember(callback: Object) throws(PluginError) {
            try caller.perform("B", "remember", ["callback": .object(callback)], timeout: timeout)
        }

        /// Calls what was remembered, and lets go of it.
        ///
        /// Performs `callBack`.
        @discardableResult
        func callBack(text: String) async throws(PluginError) -> Int {
            try await caller.call("B", "callBack", ["text": .string(text)], timeout: timeout).result(of: "B/callBack")
        }

        /// Uses whatever implements the HomeService.
        ///
        /// Performs `advertise`.
        @discardableResult
        func advertise(key: String) throws(PluginError) -> String {
            try caller.perform("B", "advertise", ["key": .string(key)], timeout: timeout).result(of: "B/advertise")
        }

        /// Adds up bytes where they lie.
        ///
        /// Performs `sum`.
        @discardableResult
        func sum(data: Bytes) throws(PluginError) -> Int {
            try caller.perform("B", "sum", ["data": .bytes(data)], timeout: timeout).result(of: "B/sum")
        }

        /// A page that collects what is chosen on the pages above it.
        ///
        /// Performs `basket`.
        @discardableResult
        func basket() throws(PluginError) -> Object {
            try caller.perform("B", "basket", [:], timeout: timeout).result(of: "B/basket")
        }
    }

    /// The actions of an object of the type `Basket`.
    struct Basket: Sendable {
        /// What the calls go to.
        let object: Object
        /// How long each call may take. Default: what the host says.
        var timeout: Duration?

        init(_ object: Object, timeout: Duration? = nil) {
            self.object = object
            self.timeout = timeout
        }

        /// Performs `content`.
        @discardableResult
        func content() throws(PluginError) -> [String: Value] {
            try object.perform("content", [:], timeout: timeout).result(of: "Basket/content")
        }

        /// Performs `handle.shop.choose`.
        @discardableResult
        func handleShopChoose(_parameters: [String: Value]? = nil) throws(PluginError) -> Value {
            var given: [(String, Value)] = []
            if let _parameters { given.append(("_parameters", .map(_parameters))) }
            return try object.perform("handle.shop.choose", Parameters(given), timeout: timeout)
        }

        /// Opens the page of an article on top of this one.
        ///
        /// Performs `look`.
        @discardableResult
        func look(key: String) async throws(PluginError) -> Value {
            try await object.call("look", ["key": .string(key)], timeout: timeout)
        }

        /// Performs `backData`.
        @discardableResult
        func backData() throws(PluginError) -> [Value] {
            try object.perform("backData", [:], timeout: timeout).result(of: "Basket/backData")
        }
    }

    /// The URLs of the module, each with the parameters of its pattern and of its action.
    enum Routes: Sendable, Hashable {
        /// `app://basket`, to `B/basket`
        case basket

        /// Builds the URL.
        ///
        /// - Throws: `mistypedParameter` for a value that does not fit.
        func url(_ caller: any Caller) throws(PluginError) -> String {
            switch self {
            case .basket:
                return try caller.url(for: "app://basket", [:])
            }
        }

        /// Opens the URL.
        ///
        /// - Parameters:
        ///   - caller: What the call goes through.
        ///   - parameters: Values that stand before those of the URL, also of kinds that a URL cannot carry.
        ///   - timeout: How long the call may take. Default: what the host says.
        @discardableResult
        func open(_ caller: any Caller, _ parameters: Parameters = [:], timeout: Duration? = nil) async throws(PluginError) -> Value {
            try await caller.open(url(caller), parameters, origin: .local, timeout: timeout)
        }
    }
}
