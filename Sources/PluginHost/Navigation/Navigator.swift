public import PluginABI
import PluginFile
import Synchronization

/// An object that opens and closes pages, keeps them in layers, and has a presenter show them.
///
///     let navigator = Navigator(host, presenter: terminal)
///     try await navigator.open("app://shop/article/lamp", by: .presentInNewStack)
///     try await navigator.open("app://shop/article/pear") { backData in print(backData) }
///     try await navigator.pop()
///
/// A page is an object that an action returns (see ``/PluginABI/Page``). Opening one is a call like any other, by name
/// or by URL, from here or from another program. The terms are those of the Router and the XControllerManager for view
/// controllers on iOS.
///
/// All functions can be called from any task, also concurrently; pages are opened and closed one at a time.
public final class Navigator: Sendable {
    /// A completion that receives, once, the back data of a closed page, or the error of getting the back data.
    public typealias Completion = @Sendable (Result<Value, PluginError>) async -> Void

    let host: PluginHost
    private let presenter: any Presenter
    private let turn = AsyncMutex()
    private let state = Mutex<[PageLayer]>([])

    /// The number of open pages at which URLs from outside can open no more.
    static let mostPages = 1000

    /// Makes a navigator without pages.
    ///
    /// - Parameters:
    ///   - host: The host whose modules make the pages.
    ///   - presenter: The presenter that shows them.
    ///   - showsRoutes: Whether the navigator shows the pages of URLs from outside whose routes declare a transition
    ///     (``/PluginABI/Route/transition(_:)``). If a host has several such navigators, the first one that still
    ///     exists shows them.
    public init(_ host: PluginHost, presenter: any Presenter, showsRoutes: Bool = true) {
        (self.host, self.presenter) = (host, presenter)
        if showsRoutes { host.core.routeNavigators.add(self) }
    }

    /// All open layers. The visible one is the last.
    public var layers: [PageLayer] { state.withLock { $0 } }

    /// The visible page.
    public var top: OpenPage? { layers.top }
}

// MARK: Opening

extension Navigator {
    /// Opens the page of a URL.
    ///
    /// The page is made with its parameters, gets those that it lists as properties, and is asked whether it should
    /// open. Then it is shown, and finally notified that it was opened. If anything fails before it is shown, it is
    /// released, and is not opened.
    ///
    /// - Parameters:
    ///   - url: A URL of a route, or `scheme://target/action?name=value`, that leads to an action which makes a page.
    ///   - parameters: Values of any kind, which have precedence over those in the URL.
    ///   - transition: How the page is shown.
    ///   - origin: ``/PluginABI/CallOrigin/remote`` for a URL from outside the program: it reaches remote actions only,
    ///     and the program's guard is asked.
    ///   - onClose: The completion that receives the page's back data once, when the page is closed. It is not called
    ///     for ``/PluginABI/Transition/none``, because a page that is not shown is never closed.
    /// - Throws: ``/PluginABI/PluginError/Code/noStack``; ``/PluginABI/PluginError/Code/pageRefused``;
    ///   ``/PluginABI/PluginError/Code/pageOpen`` for an object that is already open;
    ///   ``/PluginABI/PluginError/Code/invalidResult`` if the action does not return an object;
    ///   ``/PluginABI/PluginError/Code/circularWait`` if called by the presenter; the error of the call, the page, or
    ///   the presenter.
    @discardableResult
    public func open(
        _ url: String, _ parameters: NamedValues = [:], by transition: Transition = .push,
        origin: CallOrigin = .local, onClose: Completion? = nil
    ) async throws(PluginError) -> OpenPage {
        try await open(.url(url, origin), parameters.get(), by: transition, in: host.program, onClose: onClose)
    }

    /// Opens the page that an action makes. See ``open(_:_:by:origin:onClose:)``.
    @discardableResult
    public func open(
        _ target: String, _ action: String, _ parameters: NamedValues = [:], by transition: Transition = .push,
        onClose: Completion? = nil
    ) async throws(PluginError) -> OpenPage {
        try await open(.action(target, action), parameters.get(), by: transition, in: host.program, onClose: onClose)
    }

    /// Opens a page that the caller holds, as the result of a call or of ``PluginHost/object(for:_:origin:timeout:)``.
    ///
    ///     let pear = try await host.object(for: "app://shop/article/pear")
    ///     try await navigator.open(page: pear, by: .present)
    ///
    /// The page gets those of the parameters that it lists as properties, and is asked, shown and notified like any
    /// other.
    ///
    /// - Parameters:
    ///   - page: The page. It must not be open.
    ///   - parameters: The parameters of the page. Default: none, because those with which it was made are not known.
    ///   - transition: How the page is shown.
    ///   - onClose: The completion that receives the page's back data once, when the page is closed.
    /// - Throws: The errors of ``open(_:_:by:origin:onClose:)``; ``/PluginABI/PluginError/Code/unknownObject`` for an
    ///   object of another host.
    @discardableResult
    public func open(
        page: Object, _ parameters: NamedValues = [:], by transition: Transition = .push,
        onClose: Completion? = nil
    ) async throws(PluginError) -> OpenPage {
        try await open(.page(page), parameters.get(), by: transition, in: host.program, onClose: onClose)
    }

    /// Opens a page that was opened before and is not shown (it was opened by ``/PluginABI/Transition/none``, or was
    /// closed), with the same URL and parameters. See ``open(page:_:by:onClose:)``.
    @discardableResult
    public func open(
        page: OpenPage, by transition: Transition = .push, onClose: Completion? = nil
    ) async throws(PluginError) -> OpenPage {
        try await open(
            .page(page.object, url: page.url), page.parameters, by: transition, in: host.program, onClose: onClose)
    }

    /// Opens the page of a URL, with the parameters in a map.
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func open(
        _ url: String, _ parameters: [String: Value], by transition: Transition = .push, origin: CallOrigin = .local,
        onClose: Completion? = nil
    ) async throws(PluginError) -> OpenPage {
        try await open(.url(url, origin), parameters, by: transition, in: host.program, onClose: onClose)
    }

    /// Opens the page that an action makes, with the parameters in a map.
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func open(
        _ target: String, _ action: String, _ parameters: [String: Value], by transition: Transition = .push,
        onClose: Completion? = nil
    ) async throws(PluginError) -> OpenPage {
        try await open(.action(target, action), parameters, by: transition, in: host.program, onClose: onClose)
    }

    /// Opens a page that the caller holds, with the parameters in a map.
    @_documentation(visibility: internal) @_disfavoredOverload @discardableResult
    public func open(
        page: Object, _ parameters: [String: Value], by transition: Transition = .push, onClose: Completion? = nil
    ) async throws(PluginError) -> OpenPage {
        try await open(.page(page), parameters, by: transition, in: host.program, onClose: onClose)
    }

    /// - Parameter context: The context in which the calls are made.
    func open(
        _ address: PageAddress, _ given: [String: Value], by transition: Transition, in context: HostContext,
        onClose: Completion?
    ) async throws(PluginError) -> OpenPage {
        try turn.refuseInside()
        if transition == .push { try layers.checkStack() }
        if case .page(let object, _) = address { try check(object, for: transition) }
        let (object, parameters) = try await address.open(given, in: context, host.calls)
        let entry = ObjectTable.contents(of: object.handle).0
        let page = OpenPage(
            object: object, type: entry.name, module: entry.generation.name,
            version: entry.generation.version.description, url: address.url,
            parameters: try parameters.converted(for: entry),
            transition: transition, onClose: onClose, entry: entry)
        try await inject(page, in: context)
        try await ask(page, in: context)
        if transition != .none { try await show(page, by: transition) }
        await tellOpened(page, in: context)
        return page
    }

    /// Checks a page that the caller holds, before the page is asked anything.
    ///
    /// - Throws: `unknownObject` for an object of another host; `pageOpen` if it would be shown twice.
    private func check(_ object: Object, for transition: Transition) throws(PluginError) {
        let type = ObjectTable.contents(of: object.handle).0
        guard type.generation.core === host.core else {
            throw PluginError(
                .unknownObject,
                "The \(type.name) of \(type.generation.name) belongs to another host: a navigator opens only "
                    + "pages of its own host.")
        }
        if transition != .none { try layers.checkClosed(object, type.name, of: type.generation.name) }
    }

    /// Sets the properties that the page lists.
    private func inject(_ page: OpenPage, in context: HostContext) async throws(PluginError) {
        for (name, value) in page.parameters.sorted(by: { $0.key < $1.key })
        where !value.isNull && page.declares("set." + name) {
            _ = try await page.object.call("set." + name, [value], in: context)
        }
    }

    private func ask(_ page: OpenPage, in context: HostContext) async throws(PluginError) {
        guard page.declares("shouldOpen") else { return }
        let answer = try await page.call("shouldOpen", page.opening, in: context)
        guard let isWilling = answer.bool else {
            throw PluginError(
                .invalidResult,
                "shouldOpen of the page \(page.type) returned a value of type \(answer.kind); a bool is expected.",
                source: page.module)
        }
        guard isWilling else {
            throw PluginError(
                .pageRefused,
                "The page \(page.type) of \(page.module) refused to be opened\(page.url.map { " by “\($0.shortened)”" } ?? "")."
            )
        }
    }

    private func show(_ page: OpenPage, by transition: Transition) async throws(PluginError) {
        try await turn.take { [self] () async throws(PluginError) in
            let before = layers
            let after = try before.opening(page, by: transition)
            do {
                try await presenter.opened(page, by: transition, in: after)
            } catch {
                throw PluginError(thrown: error)
            }
            state.withLock { $0 = after }
            setParent(of: page, to: before.top)
        }
    }

    private func tellOpened(_ page: OpenPage, in context: HostContext) async {
        guard page.declares("opened") else { return }
        do throws(PluginError) { _ = try await page.call("opened", page.opening, in: context) } catch {
            log("failed after it was opened: \(error.message) (\(error.code))", page)
        }
    }

    /// Lets events that a page does not handle bubble to the page below.
    private func setParent(of page: OpenPage, to below: OpenPage?) {
        do throws(PluginError) { try page.object.setParent(below?.object) } catch {
            log("cannot pass events on to the page below: \(error.message) (\(error.code))", page)
        }
    }

    private func log(_ message: String, _ page: OpenPage) {
        host.configuration.log(
            LogEntry(level: .error, module: page.module, message: "The page \(page.type) \(message)"))
    }
}

// MARK: Closing

extension Navigator {
    /// Closes the topmost pages of the visible stack.
    ///
    /// - Parameter count: The number of pages. The first page of the stack stays open.
    /// - Returns: The closed pages, topmost first. This is the order in which their openers received the back data.
    /// - Throws: ``/PluginABI/PluginError/Code/nothingToClose`` if there are fewer pages; then none is closed.
    @discardableResult
    public func pop(_ count: Int = 1) async throws(PluginError) -> [OpenPage] {
        try await close { (layers) throws(PluginError) in try layers.popping(count) }
    }

    /// Closes all pages of the visible stack except the first. There may be none to close.
    @discardableResult
    public func popToRoot() async throws(PluginError) -> [OpenPage] {
        try await close { (layers) throws(PluginError) in max(0, (layers.last?.pages.count ?? 0) - 1) }
    }

    /// Closes everything above a page, in all stacks, so that the page becomes visible.
    ///
    /// - Throws: ``/PluginABI/PluginError/Code/pageNotOpen``.
    @discardableResult
    public func popTo(_ page: Object) async throws(PluginError) -> [OpenPage] {
        try await close { (layers) throws(PluginError) in try layers.pages(above: page) }
    }

    /// Closes a page and everything above it.
    ///
    /// - Throws: ``/PluginABI/PluginError/Code/pageNotOpen``, also for a page that was closed before.
    @discardableResult
    public func close(_ page: Object) async throws(PluginError) -> [OpenPage] {
        try await close { (layers) throws(PluginError) in try layers.pages(above: page) + 1 }
    }

    /// Closes the layers that were presented last. A layer is one page, or a stack with all its pages.
    ///
    /// - Parameter count: The number of layers.
    /// - Throws: ``/PluginABI/PluginError/Code/nothingToClose`` if there are fewer layers; then none is closed.
    @discardableResult
    public func dismiss(_ count: Int = 1) async throws(PluginError) -> [OpenPage] {
        try await close { (layers) throws(PluginError) in try layers.dismissing(count) }
    }

    /// Removes pages, shows what is left, then gets each page's back data and passes it to the page's opener.
    private func close(
        _ count: @escaping @Sendable ([PageLayer]) throws(PluginError) -> Int
    ) async throws(PluginError) -> [OpenPage] {
        let closed = try await turn.take { [self] () async throws(PluginError) -> [OpenPage] in
            var layers = self.layers
            let closed = layers.close(try count(layers))
            guard !closed.isEmpty else { return [] }
            let left = layers
            state.withLock { $0 = left }
            await presenter.closed(closed, in: left)
            return closed
        }
        for page in closed {
            let backData = await backData(of: page)
            setParent(of: page, to: nil)
            await page.onClose?(backData)
        }
        return closed
    }

    private func backData(of page: OpenPage) async -> Result<Value, PluginError> {
        guard page.declares("backData") else { return .success(.null) }
        do throws(PluginError) { return .success(try await page.object.call("backData")) } catch {
            log("was closed, but returned no back data: \(error.message) (\(error.code))", page)
            return .failure(error)
        }
    }
}

extension OpenPage {
    /// The parameters of `shouldOpen` and `opened`.
    fileprivate var opening: [String: Value] {
        ["url": url.map(Value.string) ?? .null, "parameters": .map(parameters)]
    }
}

extension Navigator: RouteNavigator {
    /// - Throws: `overloaded` if too many pages are open.
    func show(
        _ url: String, _ admission: RemoteAdmission, _ parameters: [String: Value], by transition: Transition,
        in context: HostContext
    ) async throws(PluginError) -> Object {
        let count = layers.reduce(0) { $0 + $1.pages.count }
        guard count < Self.mostPages else {
            throw PluginError(
                .overloaded,
                "\(count) pages are open. URLs from outside can open a page only while there are fewer than "
                    + "\(Self.mostPages): close some of them.")
        }
        let address = PageAddress.url(url, .remote, admission)
        return try await open(address, parameters, by: transition, in: context, onClose: nil).object
    }
}
