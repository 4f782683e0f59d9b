import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// How opening and closing change the layers of a navigator: `a > b` is a stack, `[c]` a page that is presented alone.
@Suite struct PageLayersTests {
    enum Operation: Sendable {
        case push, present, presentInNewStack, none
        case pop(Int)
        case dismiss(Int)
        case close(above: String)
    }

    static let cases: [(layers: String, operation: Operation, outcome: String)] = [
        ("", .push, "noStack"),
        ("", .present, "[x]"),
        ("", .presentInNewStack, "x"),
        ("", .none, ""),
        ("a", .push, "a > x"),
        ("a > b", .push, "a > b > x"),
        ("a", .present, "a | [x]"),
        ("a | [b]", .push, "noStack"),
        ("a | [b]", .present, "a | [b] | [x]"),
        ("a | [b]", .presentInNewStack, "a | [b] | x"),
        ("a | [b] | c", .push, "a | [b] | c > x"),
        ("a > b | c", .none, "a > b | c"),
        ("x", .push, "pageOpen"),
        ("a > x | [b]", .present, "pageOpen"),
        ("[x]", .presentInNewStack, "pageOpen"),
        ("", .pop(1), "nothingToClose"),
        ("a", .pop(1), "nothingToClose"),
        ("[a]", .pop(1), "nothingToClose"),
        ("a > b", .pop(1), "a"),
        ("a > b > c", .pop(2), "a"),
        ("a > b > c", .pop(3), "nothingToClose"),
        ("a > b", .pop(0), "nothingToClose"),
        ("a > b", .pop(-1), "nothingToClose"),
        ("a > b", .pop(.max), "nothingToClose"),
        ("a > b | c", .pop(1), "nothingToClose"),
        ("a | b > c", .pop(1), "a | b"),
        ("", .dismiss(1), "nothingToClose"),
        ("a > b", .dismiss(1), ""),
        ("a | [b]", .dismiss(1), "a"),
        ("a | b > c", .dismiss(1), "a"),
        ("a | [b] | c > x", .dismiss(2), "a"),
        ("a | [b]", .dismiss(2), ""),
        ("a | [b]", .dismiss(3), "nothingToClose"),
        ("a | [b]", .dismiss(0), "nothingToClose"),
        ("a | [b]", .dismiss(-1), "nothingToClose"),
        ("a | [b]", .dismiss(.max), "nothingToClose"),
        ("a > b > c", .close(above: "a"), "a"),
        ("a > b | [c]", .close(above: "a"), "a"),
        ("a | b > c", .close(above: "b"), "a | b"),
        ("a > b", .close(above: "b"), "a > b"),
        ("a > b", .close(above: "x"), "pageNotOpen"),
        ("", .close(above: "x"), "pageNotOpen"),
    ]

    private let navigator: Navigator

    init() throws {
        let host = PluginHost(.init(folders: []))
        try host.register(.noted(PageNotes()))
        navigator = Navigator(host, presenter: RecordingPresenter())
    }

    @Test func `Operations change the layers as they say, or fail and leave them as they are`() async throws {
        var (pages, names): ([String: OpenPage], [ObjectIdentifier: String]) = ([:], [:])
        for name in ["a", "b", "c", "x"] {
            let page = try await navigator.open("Pages", "page", ["name": .string(name)], by: .none)
            (pages[name], names[ObjectIdentifier(page.object)]) = (page, name)
        }
        func layers(_ text: String) -> [PageLayer] {
            text.split(separator: " | ").map { layer in
                let words = layer.trimmingPrefix("[").replacing("]", with: "").split(separator: " > ")
                return PageLayer(isStack: !layer.hasPrefix("["), pages: words.map { pages[String($0)]! })
            }
        }
        func text(_ layers: [PageLayer]) -> String {
            layers.map { layer in
                let path = layer.pages.map { names[ObjectIdentifier($0.object)]! }.joined(separator: " > ")
                return layer.isStack ? path : "[\(path)]"
            }.joined(separator: " | ")
        }
        for the in Self.cases {
            let outcome: String
            do throws(PluginError) {
                let new = try Self.apply(the.operation, to: layers(the.layers), opening: pages["x"]!) {
                    pages[$0]!.object
                }
                outcome = text(new)
            } catch { outcome = error.code.rawValue }
            #expect(outcome == the.outcome, "\(the)")
        }
    }

    private static func apply(
        _ operation: Operation, to layers: [PageLayer], opening page: OpenPage, object: (String) -> Object
    ) throws(PluginError) -> [PageLayer] {
        let count: Int
        switch operation {
        case .push: return try layers.opening(page, by: .push)
        case .present: return try layers.opening(page, by: .present)
        case .presentInNewStack: return try layers.opening(page, by: .presentInNewStack)
        case .none: return try layers.opening(page, by: .none)
        case .pop(let pages): count = try layers.popping(pages)
        case .dismiss(let number): count = try layers.dismissing(number)
        case .close(let name): count = try layers.pages(above: object(name))
        }
        var rest = layers
        let closed = rest.close(count)
        #expect(closed == layers.flatMap(\.pages).suffix(count).reversed())
        return rest
    }
}
