import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// The error for an argument that a module cannot read names the action, the parameter, and the place in its value.
@Suite struct ArgumentErrorTests {
    enum Order: String, ValueCodable, CaseIterable { case code, title, visits }
    struct Draft: ValueCodable { var url: String }
    final class List: Sendable {}

    private static let manifest = Manifest("Bookmarks", version: "1.0.0") {
        Target("Bookmarks") {
            Action("list", .context(), .required("order", Order.self)) { _, order in order }
            Action("importAll", .optional("limit", Int.self), .required("drafts", [Draft].self)) { _, drafts in
                drafts.count
            }
            Action("later", .required("first", Int.self), .optional("order", Order.self)) { first, order in
                await Task.yield()
                return first
            }
            Action("replied", .reply(Int.self), .required("order", Order.self)) { reply, order in reply.resolve(1) }
            Action("inside", .required("value", Value.self)) { value in try value.get(Order.self) }
            Action("own", .required("order", Order.self)) { order in throw PluginError("own", "The own error.") }
            Action("big") { UInt64.max }
            Action("bigger") { ["a": [1, UInt64.max]] }
            Action("object", .context()) { context in try context.object(List()) }
        }
        ObjectType("List", List.self) {
            Action("sort", .instance(), .required("order", Order.self)) { _, order in order }
        }
    }

    private let test: TestHost

    init() throws {
        test = try TestHost([built("libDesk.so")])
        try test.host.register(Self.manifest)
    }

    private func message(_ target: String, _ action: String, _ parameters: Parameters) async -> String {
        do throws(PluginError) {
            return try await test.host.call(target, action, parameters).json
        } catch { return error.message }
    }

    @Test func `The error of an argument names action, parameter and place`() async throws {
        let order = "“order” is “size”; it may be code, title or visits."
        #expect(await message("Bookmarks", "list", ["order": "size"]) == "Bookmarks/list: \(order)")
        #expect(await message("Bookmarks", "list", ["size"]) == "Bookmarks/list: \(order)")
        #expect(await message("Bookmarks", "later", ["first": 1, "order": "size"]) == "Bookmarks/later: \(order)")
        #expect(await message("Bookmarks", "replied", ["order": "size"]) == "Bookmarks/replied: \(order)")
        let drafts: Value = [["url": "u"], ["ulr": "u"]]
        #expect(
            await message("Bookmarks", "importAll", ["drafts": drafts])
                == "Bookmarks/importAll: drafts[1].url is missing.")
        #expect(
            await message("Bookmarks", "importAll", ["drafts": [1] as Value])
                == "Bookmarks/importAll: drafts[0] is of type int, where a map was expected.")
    }

    @Test func `An error about a value that the action itself reads names the action`() async throws {
        #expect(
            await message("Bookmarks", "inside", ["value": "size"])
                == "Bookmarks/inside: the value is “size”; it may be code, title or visits.")
        #expect(await message("Bookmarks", "own", ["order": "code"]) == "The own error.")
    }

    @Test func `A result that cannot be expressed has the place`() async throws {
        #expect(
            await message("Bookmarks", "big", [:]).hasSuffix(
                "The result is 18446744073709551615, which does not fit into Int."))
        #expect(
            await message("Bookmarks", "bigger", [:]).hasSuffix(
                "result.a[1] is 18446744073709551615, which does not fit into Int."))
    }

    @Test func `The action of an object is named with the type`() async throws {
        let object = try #require(try test.host.perform("Bookmarks", "object").object)
        let error = #expect(throws: PluginError.self) { try object.perform("sort", ["order": "size"]) }
        #expect(error?.message == "List.sort: “order” is “size”; it may be code, title or visits.")
    }

    @Test func `A shared library says the same, and its façade too`() async throws {
        #expect(
            await message("Desk", "import", ["drafts": [["title": "a", "tags": []], ["title": "b"]] as Value])
                == "Desk/import: drafts[1].tags is missing.")
        #expect(
            await message("Desk", "order", ["order": "size"])
                == "Desk/order: “order” is “size”; it may be title or by date.")
    }
}
