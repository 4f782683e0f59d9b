import PluginABI
import PluginHost
import Synchronization

/// A page of the program that notes the calls it receives.
final class NotedPage: Sendable {
    let name: String
    let notes: PageNotes
    init(_ name: String, _ notes: PageNotes) { (self.name, self.notes) = (name, notes) }
    deinit { notes.add("\(name) is gone") }
}

/// The notes of several pages, in order.
final class PageNotes: Sendable {
    private let entries = Mutex<[String]>([])
    var all: [String] { entries.withLock(\.self) }
    func add(_ note: String) { entries.withLock { $0.append(note) } }

    private let page = Mutex<Object?>(nil)

    /// Returns one page for all callers.
    func shared(_ make: () throws -> Object) rethrows -> Object {
        try page.withLock { page in
            let shared = try page ?? make()
            page = shared
            return shared
        }
    }
}

extension Manifest {
    /// A module with the target `Pages`, whose action `page` makes a page with a name. A page named `unwilling`
    /// refuses; `broken` throws when it is asked for its back data, and `late` when it is notified that it is open.
    static func noted(_ notes: PageNotes) -> Manifest {
        Manifest("Noted", version: "1.0.0") {
            Target("Pages") {
                Action(
                    "page", .context(), .required("name", String.self), .optional("size", Int.self, default: 1),
                    .optional("rest", Value.self)
                ) { context, name, _, _ in try context.object("Noted", NotedPage(name, notes)) }
                Action("number") { 3 }
                Action("shared", .context()) { context in
                    try notes.shared { try context.object("Noted", NotedPage("shared", notes)) }
                }
            }
            Page("Noted", NotedPage.self) {
                Action.property("size", Int.self) { page, size in page.notes.add("\(page.name) has the size \(size)") }
                Action.shouldOpen { page, opening in
                    page.notes.add(
                        "\(page.name) should open by \(opening.url ?? "name"): "
                            + opening.parameters.keys.sorted().joined(separator: ", "))
                    return page.name != "unwilling"
                }
                Action.opened { page, _ in
                    page.notes.add("\(page.name) is open")
                    if page.name == "late" { throw PluginError("late", "Too late.") }
                }
                Action.content { page in PageContent(page.name) }
                Action.backData { page in
                    if page.name == "broken" { throw PluginError("broken", "It is broken.") }
                    return page.name
                }
                Action.handle("noted.asked") { page, _ in .handled(.string(page.name)) }
            }
            Route("noted://pages/:name", to: "Pages/page", defaults: ["size": 7])
        }
    }
}
