public import PluginABI

/// How a page comes to be seen. The raw values are those that modules use.
public enum Transition: String, Sendable, CaseIterable, ValueConvertible {
    /// On top of the page that is seen, in its stack.
    case push
    /// In front of everything, alone: nothing can be pushed onto it.
    case present
    /// In front of everything, as the first page of a new stack.
    case presentInNewStack
    /// Not at all: the page is made and told that it was opened, and belongs to whoever opened it.
    case none
}
