// swift-format-ignore-file
// Made by `pluginhost facade` from the manifest of ModuleA 1.0.0.
// Do not change it by hand: make it again when the module has changed.

import PluginABI

/// Calls of ModuleA 1.0.0 that the compiler checks, in modules and in programs.
enum ModuleAFacade {
    /// The shop's pages
    ///
    /// The actions of the target `A`.
    struct A: Sendable {
        /// What the calls go through.
        let caller: any Caller
        /// How long each call may take. Default: what the host says.
        var timeout: Duration?

        init(_ caller: any Caller, timeout: Duration? = nil) {
            self.caller = caller
            self.timeout = timeout
        }

        /// Performs `fetchDetail`.
        @discardableResult
        func fetchDetail(key: String, page: Int = 1) throws(PluginError) -> Value {
            try caller.perform("A", "fetchDetail", ["key": .string(key), "page": .int(page)], timeout: timeout)
        }

        /// Performs `nativeSecret`.
        @discardableResult
        func nativeSecret() throws(PluginError) -> String {
            try caller.perform("A", "nativeSecret", [:], timeout: timeout).result(of: "A/nativeSecret")
        }

        /// Asks B, which asks A for the name of the currency.
        ///
        /// Performs `price`.
        @discardableResult
        func price(key: String) throws(PluginError) -> String {
            try caller.perform("A", "price", ["key": .string(key)], timeout: timeout).result(of: "A/price")
        }

        /// Tells everybody who wants to know, and answers how many did.
        ///
        /// Performs `buy`.
        @discardableResult
        func buy(key: String) throws(PluginError) -> Int {
            try caller.perform("A", "buy", ["key": .string(key)], timeout: timeout).result(of: "A/buy")
        }

        /// Performs `currencyName`.
        @discardableResult
        func currencyName(code: String) throws(PluginError) -> String {
            try caller.perform("A", "currencyName", ["code": .string(code)], timeout: timeout).result(of: "A/currencyName")
        }

        /// The page of one article, to be shown by a navigator.
        ///
        /// Performs `article`.
        @discardableResult
        func article(key: String, note: String? = nil) throws(PluginError) -> Object {
            var given: [(String, Value)] = [("key", .string(key))]
            if let note { given.append(("note", .string(note))) }
            return try caller.perform("A", "article", Parameters(given), timeout: timeout).result(of: "A/article")
        }
    }

    /// The actions of the target `Counter`.
    struct Counter: Sendable {
        /// What the calls go through.
        let caller: any Caller
        /// How long each call may take. Default: what the host says.
        var timeout: Duration?

        init(_ caller: any Caller, timeout: Duration? = nil) {
            self.caller = caller
            self.timeout = timeout
        }

        /// Performs `add`.
        @discardableResult
        func add(n: Int) throws(PluginError) -> Int {
            try caller.perform("Counter", "add", ["n": .int(n)], timeout: timeout).result(of: "Counter/add")
        }

        /// Performs `search`.
        @discardableResult
        func search(text: String) throws(PluginError) -> Object {
            try caller.perform("Counter", "search", ["text": .string(text)], timeout: timeout).result(of: "Counter/search")
        }
    }

    /// The actions of an object of the type `Cursor`.
    struct Cursor: Sendable {
        /// What the calls go to.
        let object: Object
        /// How long each call may take. Default: what the host says.
        var timeout: Duration?

        init(_ object: Object, timeout: Duration? = nil) {
            self.object = object
            self.timeout = timeout
        }

        /// Performs `next`.
        @discardableResult
        func next() throws(PluginError) -> Value {
            try object.perform("next", [:], timeout: timeout)
        }
    }

    /// The actions of an object of the type `Article`.
    struct Article: Sendable {
        /// What the calls go to.
        let object: Object
        /// How long each call may take. Default: what the host says.
        var timeout: Duration?

        init(_ object: Object, timeout: Duration? = nil) {
            self.object = object
            self.timeout = timeout
        }

        /// Performs `set.note`.
        func setNote(value: String) throws(PluginError) {
            try object.perform("set.note", ["value": .string(value)], timeout: timeout)
        }

        /// Performs `shouldOpen`.
        @discardableResult
        func shouldOpen(url: String? = nil, parameters: [String: Value]? = nil) throws(PluginError) -> Bool {
            var given: [(String, Value)] = []
            if let url { given.append(("url", .string(url))) }
            if let parameters { given.append(("parameters", .map(parameters))) }
            return try object.perform("shouldOpen", Parameters(given), timeout: timeout).result(of: "Article/shouldOpen")
        }

        /// Performs `content`.
        @discardableResult
        func content() throws(PluginError) -> [String: Value] {
            try object.perform("content", [:], timeout: timeout).result(of: "Article/content")
        }

        /// Tells whoever collects articles: the pages below, the module, the program.
        ///
        /// Performs `choose`.
        @discardableResult
        func choose() throws(PluginError) -> Bool {
            try object.perform("choose", [:], timeout: timeout).result(of: "Article/choose")
        }

        /// Performs `backData`.
        @discardableResult
        func backData() throws(PluginError) -> Bool {
            try object.perform("backData", [:], timeout: timeout).result(of: "Article/backData")
        }
    }

    /// What the shop shows
    ///
    /// What the service `HomeService` from version 1.2.0 on does, to be asked for or stood in for.
    protocol HomeService: Sendable {
        /// Performs `fetchDetail`.
        @discardableResult
        func fetchDetail(key: String, page: Int) throws(PluginError) -> Value

        /// Performs `nativeSecret`.
        @discardableResult
        func nativeSecret() throws(PluginError) -> String

        /// Asks B, which asks A for the name of the currency.
        ///
        /// Performs `price`.
        @discardableResult
        func price(key: String) throws(PluginError) -> String

        /// Tells everybody who wants to know, and answers how many did.
        ///
        /// Performs `buy`.
        @discardableResult
        func buy(key: String) throws(PluginError) -> Int

        /// Performs `currencyName`.
        @discardableResult
        func currencyName(code: String) throws(PluginError) -> String

        /// The page of one article, to be shown by a navigator.
        ///
        /// Performs `article`.
        @discardableResult
        func article(key: String, note: String?) throws(PluginError) -> Object
    }

    /// Calls the service `HomeService` from version 1.2.0 on, whichever module offers it.
    ///
    ///     let client = try caller.service(HomeServiceClient.self)
    struct HomeServiceClient: HomeService, ServiceClient {
        static let serviceName = "HomeService"
        static let minimumVersion: String? = "1.2.0"
        /// What the calls go through.
        let service: ServiceHandle
        /// How long each call may take. Default: what the host says.
        var timeout: Duration?

        init(_ service: ServiceHandle) {
            self.service = service
        }

        /// Performs `fetchDetail`.
        @discardableResult
        func fetchDetail(key: String, page: Int = 1) throws(PluginError) -> Value {
            try service.perform("fetchDetail", ["key": .string(key), "page": .int(page)], timeout: timeout)
        }

        /// Performs `nativeSecret`.
        @discardableResult
        func nativeSecret() throws(PluginError) -> String {
            try service.perform("nativeSecret", [:], timeout: timeout).result(of: "HomeService/nativeSecret")
        }

        /// Asks B, which asks A for the name of the currency.
        ///
        /// Performs `price`.
        @discardableResult
        func price(key: String) throws(PluginError) -> String {
            try service.perform("price", ["key": .string(key)], timeout: timeout).result(of: "HomeService/price")
        }

        /// Tells everybody who wants to know, and answers how many did.
        ///
        /// Performs `buy`.
        @discardableResult
        func buy(key: String) throws(PluginError) -> Int {
            try service.perform("buy", ["key": .string(key)], timeout: timeout).result(of: "HomeService/buy")
        }

        /// Performs `currencyName`.
        @discardableResult
        func currencyName(code: String) throws(PluginError) -> String {
            try service.perform("currencyName", ["code": .string(code)], timeout: timeout).result(of: "HomeService/currencyName")
        }

        /// The page of one article, to be shown by a navigator.
        ///
        /// Performs `article`.
        @discardableResult
        func article(key: String, note: String? = nil) throws(PluginError) -> Object {
            var given: [(String, Value)] = [("key", .string(key))]
            if let note { given.append(("note", .string(note))) }
            return try service.perform("article", Parameters(given), timeout: timeout).result(of: "HomeService/article")
        }
    }

    /// The URLs of the module, each with the parameters of its pattern and of its action.
    enum Routes: Sendable, Hashable {
        /// The page of one article
        ///
        /// `app://shop/detail/:key/:page(\d+)?`, to `A/fetchDetail`
        case detail(key: String, page: Int? = nil)

        /// `app://shop/price/:key`, to `A/price`
        case price(key: String)

        /// The page of one article, with a price
        ///
        /// `app://shop/article/:key`, to `A/article`
        case article(key: String, note: String? = nil)

        /// `app://shop/offer`, to `A/fetchDetail`
        case fetchDetail(key: String? = nil, page: Int? = nil)

        /// Builds the URL.
        ///
        /// - Throws: `mistypedParameter` for a value that does not fit.
        func url(_ caller: any Caller) throws(PluginError) -> String {
            switch self {
            case .detail(let value0, let value1):
                return try caller.url(for: "app://shop/detail/:key/:page(\\d+)?", ["key": .string(value0), "page": value1.map(Value.int) ?? .null])
            case .price(let value0):
                return try caller.url(for: "app://shop/price/:key", ["key": .string(value0)])
            case .article(let value0, let value1):
                return try caller.url(for: "app://shop/article/:key", ["key": .string(value0), "note": value1.map(Value.string) ?? .null])
            case .fetchDetail(let value0, let value1):
                return try caller.url(for: "app://shop/offer", ["key": value0.map(Value.string) ?? .null, "page": value1.map(Value.int) ?? .null])
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
