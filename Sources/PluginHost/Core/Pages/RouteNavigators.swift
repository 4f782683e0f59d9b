import PluginABI
import Synchronization

/// A navigator as the call path sees it: it shows the pages of routes that declare a transition.
protocol RouteNavigator: AnyObject, Sendable {
    /// Opens the page of a URL, and returns the page.
    ///
    /// - Parameters:
    ///   - admission: The decision of the guard, which is asked again if the URL leads elsewhere by now.
    ///   - context: The context in which the calls are made.
    func show(
        _ url: String, _ admission: RemoteAdmission, _ parameters: [String: Value], by transition: Transition,
        in context: HostContext
    ) async throws(PluginError) -> Object
}

/// The navigators of a host that show the pages of routes, in the order in which they were made. They are not retained.
final class RouteNavigators: Sendable {
    private struct Weak: Sendable {
        weak let navigator: (any RouteNavigator)?
    }

    private let all = Mutex<[Weak]>([])

    /// The first one that still exists.
    var first: (any RouteNavigator)? {
        all.withLock { all in
            for weak in all { if let navigator = weak.navigator { return navigator } }
            return nil
        }
    }

    func add(_ navigator: any RouteNavigator) {
        all.withLock { all in
            all.removeAll { $0.navigator == nil }
            all.append(Weak(navigator: navigator))
        }
    }
}
