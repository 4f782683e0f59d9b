import PluginABI
import Testing

/// The messages of errors about values.
@Suite struct ValueFaultTests {
    struct Draft: ValueCodable {
        var title: String
        var author: Author?
        var pages: [Page] = []
        var sizes: [String: Size] = [:]
        var small: Int8?
    }

    struct Author: ValueCodable {
        var name: String
        var order: Order
    }

    /// The standard library decodes this type, since it is not `ValueConvertible`.
    struct Page: Codable { var number: Int }

    enum Order: String, ValueCodable, CaseIterable { case code, title, visits }
    enum Size: Int, ValueCodable, CaseIterable {
        case small = 1
        case large
    }
    enum Secret: String, ValueCodable { case one }
    enum Letter: String, ValueConvertible, CaseIterable { case a, b, c, d, e, f, g, h, i, j, k, l, m, n }

    struct Even: ValueConvertible {
        static let kind = Value.Kind.int
        let value: Value
        init(_ value: Value) throws(PluginError) {
            guard let int = value.int, int % 2 == 0 else { throw PluginError("odd", "Only even numbers are accepted.") }
            self.value = value
        }
    }

    private func message<T: ValueConvertible>(_ value: Value, _ type: T.Type) -> String {
        do throws(PluginError) { return "\(try T(value))" } catch { return error.message }
    }

    @Test func `The value itself`() {
        #expect(message(5, String.self) == "The value is of type int, where a string was expected.")
        #expect(message(nil, [Int].self) == "The value is null, where a list was expected.")
        #expect(message(300, Int8.self) == "The value is 300, which does not fit into Int8.")
        #expect(message("size", Order.self) == "The value is “size”; it may be code, title or visits.")
        #expect(message(7, Size.self) == "The value is 7; it may be 1 or 2.")
        #expect(message("two", Secret.self) == "The value is “two”, which is not a case of Secret.")
        #expect(
            message("z", Letter.self)
                == "The value is “z”; it may be a, b, c, d, e, f, g, h, i, j, k, l or another of the 14 cases of "
                + "Letter.")
        #expect(message(3, Even.self) == "Only even numbers are accepted.")
        #expect(message("x\u{1b}[2J", Order.self).contains("“x\\u{1b}[2J”"))
    }

    @Test func `Parts have the path that leads to them`() {
        let author: Value = ["name": "a", "order": "title"]
        for (value, expected) in [
            ([:], "title is missing."),
            (["title": 1], "title is of type int, where a string was expected."),
            (["title": nil], "title is null, where a string was expected."),
            (["title": "t", "author": ["name": "a"]], "author.order is missing."),
            (
                ["title": "t", "author": ["name": "a", "order": "size"]],
                "author.order is “size”; it may be code, title or visits."
            ),
            (["title": "t", "pages": [["number": 1], [:]]], "pages[1].number is missing."),
            (["title": "t", "pages": 1], "pages is of type int, where a list was expected."),
            (["title": "t", "pages": [], "sizes": ["a b": 5]], "sizes[“a b”] is 5; it may be 1 or 2."),
            (["title": "t", "pages": [], "sizes": ["a": 5]], "sizes.a is 5; it may be 1 or 2."),
            (
                ["title": "t", "pages": [], "sizes": [:], "author": author, "small": 300],
                "small is 300, which does not fit into Int8."
            ),
        ] as [(Value, String)] {
            #expect(message(value, Draft.self) == expected)
        }
        #expect(
            message([["title": "t", "pages": [], "sizes": [:]], [:]], [Draft].self) == "value[1].title is missing.")
        #expect(message(["k": [2, 3]], [String: [Even]].self) == "k[1]: Only even numbers are accepted.")
    }

    @Test func `Values that cannot be expressed have their paths`() {
        for (encode, expected) in [
            (
                { try Value(encoding: ["a": [UInt64.max]]) },
                "a[0] is 18446744073709551615, which does not fit into Int."
            ),
            ({ try [[1], [UInt64.max]].value }, "value[1][0] is 18446744073709551615, which does not fit into Int."),
            ({ try ["k": UInt64.max].value }, "k is 18446744073709551615, which does not fit into Int."),
        ] as [(() throws -> Value, String)] {
            let error = #expect(throws: PluginError.self) { try encode() }
            #expect(error?.code == .invalidValue && error?.message == expected)
        }
    }

    @Test func `The result of an action is named`() {
        let error = #expect(throws: PluginError.self) { try Value.int(1).result(of: "T/a", as: [Int].self) }
        #expect(error == PluginError(.invalidResult, "T/a: the result is of type int, where a list was expected."))
        let part = #expect(throws: PluginError.self) { try Value.list([1, "x"]).typed(of: "T/a", as: [Int].self) }
        #expect(part == PluginError(.invalidResult, "T/a: result[1] is of type string, where an int was expected."))
    }

    @Test func `An author can change the message of an error about a value`() {
        var error = #expect(throws: PluginError.self) { try Order("size") }!
        error.message = "No such order."
        #expect(error.message == "No such order.")
        #expect(error == PluginError(.mistypedParameter, "No such order."))
    }
}
