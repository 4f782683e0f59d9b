import PluginABI

/// Shows what a ``Navigator`` says: on a terminal, in a browser, in a test. It belongs to the program.
///
/// ## Implementation requirements
///
/// The functions are called one at a time, in the order in which the pages open and close. They must not open or close
/// pages themselves, nor wait for anybody who does: that is the error `circularWait`.
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
    ///   - page: The page. It has agreed to be opened, and is told so when this returns.
    ///   - transition: Never ``Transition/none``.
    ///   - layers: All that is open from now on, the page included.
    /// - Throws: What keeps the page from being shown: it is let go of, and whoever opens it gets the error.
    func opened(_ page: OpenPage, by transition: Transition, in layers: [PageLayer]) async throws

    /// Shows what is left when pages have been closed.
    ///
    /// - Parameters:
    ///   - pages: The pages that are closed, innermost first. They have not been asked for their back data yet.
    ///   - layers: All that is still open.
    func closed(_ pages: [OpenPage], in layers: [PageLayer]) async
}
