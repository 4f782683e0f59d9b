import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// What the status states about objects that keep a generation: their type, their number, and their holders.
@Suite struct HeldObjectsTests {
    private static let library = CModule(
        name: "Library",
        code: "static plugin_object make(void) { return host->object_create(host, text(\"Book\"), 0, 0); }",
        targets: [
            .init(
                name: "Library",
                actions: [
                    .init(
                        name: "make",
                        body: """
                            plugin_object object = make();
                            reply_value(call->token, plugin_value_object(object));
                            host->object_release(host, object);
                            """),
                    .init(name: "keep", body: "make(); reply_int(call->token, 0);"),
                ])
        ], types: [("Book", [])])

    private final class Shelf: Sendable {
        let book: Object
        init(_ book: Object) { self.book = book }
    }

    private static let reader = Manifest("Reader", version: "1.0.0") {
        Target("Reader") {
            Action("take", .context(), .required("book", Object.self)) { context, book in
                try context.object("Shelf", Shelf(book))
            }
        }
        ObjectType("Shelf", Shelf.self) {}
    }

    private let test: TestHost
    private var host: PluginHost { test.host }

    init() throws {
        test = try TestHost([Self.library.build()])
        try test.host.register(Self.reader)
    }

    private var draining: GenerationStatus? { host.generations.first { $0.name == "Library" && $0.state == .draining } }

    private func waitsForDraining() async throws -> GenerationStatus {
        try host.remove("Library")
        #expect(await becomesTrue { draining != nil })
        return try #require(draining)
    }

    @Test func `Objects that the program holds`() async throws {
        let books = [try host.perform("Library", "make"), try host.perform("Library", "make")]
        let status = try await waitsForDraining()
        #expect(status.heldObjects.map(\.description) == ["2 × Book, held by the program"])
        #expect(status.reason.contains("2 × Book, held by the program. A holder releases an object by"))
        withExtendedLifetime(books) {}
    }

    @Test func `Objects that another module holds`() async throws {
        let shelf = try host.perform("Reader", "take", [try host.perform("Library", "make")])
        let status = try await waitsForDraining()
        #expect(status.heldObjects.first?.holders == ["Reader"], "\(status.heldObjects)")
        #expect(status.heldObjects.first?.count == 1 && status.heldObjects.first?.type == "Book")
        withExtendedLifetime(shelf) {}
    }

    @Test func `Objects that their own module never releases`() async throws {
        try host.perform("Library", "keep")
        let status = try await waitsForDraining()
        #expect(status.heldObjects.map(\.description) == ["1 × Book, held by Library"])
    }

    @Test func `Objects that were released have no holder`() async throws {
        _ = try host.perform("Reader", "take", [try host.perform("Library", "make")])
        #expect(await becomesTrue { host.heldObjects.isEmpty })
        let book = try host.perform("Library", "make")
        #expect(host.heldObjects.map(\.description) == ["1 × Book, held by the program"])
        withExtendedLifetime(book) {}
    }
}
