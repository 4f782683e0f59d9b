import PluginABI

// Pages that URLs from outside the program show, because their routes declare a transition.

extension Calls {
    /// Has a navigator show the page of a URL from outside, if the route declares a transition and the program has a
    /// navigator for it.
    ///
    /// - Parameter admission: The decision of the guard, which has let the URL pass.
    /// - Returns: The token of the call; `nil` if there is nothing to show.
    /// - Throws: `asynchronousAction` if the caller does not wait for later outcomes.
    @inline(never)
    func showPage(
        of resolution: URLResolution, _ admission: RemoteAdmission, _ given: UnsafeBufferPointer<plugin_entry>,
        _ call: Call, _ thread: ThreadContext, _ record: CallRecord
    ) throws(PluginError) -> plugin_token? {
        guard let transition = resolution.route?._withUnsafeGuaranteedRef({ $0.transition }), transition != .none,
            let navigator = core.routeNavigators.first
        else { return nil }
        let url = resolution.url.string
        guard call.mode == .any else {
            throw PluginError(
                .asynchronousAction,
                "“\(url.shortened)” shows its page by \(transition), as its route declares, which takes time: use await "
                    + "open(…).")
        }
        let named = given.lazy.map { [host = program.hostTable!] in ($0.key.text, Value(copying: $0.value, host: host))
        }
        let parameters = Dictionary(named) { first, _ in first }
        let page = RoutePage(navigator, url, admission, parameters, transition)
        return try invoke(core.ownActions.routePage, carrying: page, call, thread, record)
    }

    /// Creates the endpoint that shows pages: an asynchronous action of the program.
    static func makeRoutePage(_ program: Generation) -> Endpoint {
        Endpoint(own: "showing the page of a URL", of: program, ["page": .int], isRemote: true) {
            data, call, arguments, _ in
            let program = Unmanaged<Generation>.fromOpaque(data!).takeUnretainedValue()
            let page = Calls.takeCarried(RoutePage.self, arguments)
            let context = HostContext(host: program.hostTable, call: call!.pointee.token)
            let task = Task<Void, any Error>.immediate {  // Nothing in it throws; otherwise it would never reply.
                await page.show(in: context, program.calls)
            }
            TaskReply(host: program.hostTable, call: context.call).comes(from: task)
        }
    }

    /// A page to show.
    private final class RoutePage: Sendable {
        private let navigator: any RouteNavigator
        private let url: String
        private let admission: RemoteAdmission
        private let parameters: [String: Value]
        private let transition: Transition

        init(
            _ navigator: any RouteNavigator, _ url: String, _ admission: RemoteAdmission,
            _ parameters: [String: Value], _ transition: Transition
        ) {
            (self.navigator, self.url, self.admission) = (navigator, url, admission)
            (self.parameters, self.transition) = (parameters, transition)
        }

        /// Shows the page, and replies with it.
        func show(in context: HostContext, _ calls: Calls) async {
            do throws(PluginError) {
                let page = try await navigator.show(url, admission, parameters, by: transition, in: context)
                try Value.object(page).lend { value in withUnsafePointer(to: value) { calls.answer(context.call, $0) } }
            } catch {
                calls.answer(context.call, error)
            }
        }
    }
}
