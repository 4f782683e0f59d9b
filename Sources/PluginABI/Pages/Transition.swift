/// How a page is shown. The raw values are the words in manifests, in route files, and in a navigator's actions.
public enum Transition: String, Sendable, CaseIterable, ValueConvertible {
    /// Shows the page on top of the visible page, in its stack.
    case push
    /// Shows the page in front of everything, alone: no page can be pushed onto it.
    case present
    /// Shows the page in front of everything, as the first page of a new stack.
    case presentInNewStack
    /// Does not show the page: it is made and notified that it was opened, and belongs to its opener.
    case none
}
