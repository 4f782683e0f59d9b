public import PluginABI

/// A type that shows the pages of a ``Navigator``: on a terminal, in a browser, in a test. The program implements it.
///
/// ## Implementation requirements
///
/// The functions are called one at a time, in the order in which the pages open and close. They must not open or close
/// pages themselves, or wait for code that does: such a call ends with the error `circularWait`.
///
///     struct Printer: Presenter {
///         func opened(_ page: OpenPage, by transition: Transition, in layers: [PageLayer]) async throws {
///             print(try await page.content().title)
///         }
///         func closed(_ pages: [OpenPage], in layers: [PageLayer]) async {}
///     }
public protocol Presenter: Sendable {
    /// Shows a page that was opened.
    ///
    /// - Parameters:
    ///   - page: The page. It has agreed to be opened, and is notified that it was opened when this function returns.
    ///   - transition: How to show the page; never ``/PluginABI/Transition/none``.
    ///   - layers: All open layers, including the page.
    /// - Throws: Any error that keeps the page from being shown. The page is then released, and its opener gets the error.
    func opened(_ page: OpenPage, by transition: Transition, in layers: [PageLayer]) async throws

    /// Shows what is left after pages were closed.
    ///
    /// - Parameters:
    ///   - pages: The closed pages, topmost first. They have not been asked for their back data yet.
    ///   - layers: All layers that are still open.
    func closed(_ pages: [OpenPage], in layers: [PageLayer]) async
}
