internal import PluginABI
internal import PluginHost

/// Shows pages on a terminal: the open layers, and the content of the visible page.
struct TerminalPresenter: Presenter {
    let console: Console
    let asJSON: Bool

    /// Shows a page that was opened. If its content cannot be read, the page is not opened.
    func opened(_ page: OpenPage, by transition: Transition, in layers: [PageLayer]) async throws {
        show(try await page.content(), in: layers)
    }

    func closed(_ pages: [OpenPage], in layers: [PageLayer]) async { await show(layers) }

    /// Shows the current content of the visible page.
    func show(_ layers: [PageLayer]) async {
        guard let top = layers.last?.pages.last else { return show(nil, in: layers) }
        do throws(PluginError) { show(try await top.content(), in: layers) } catch {
            console.report(error, asJSON: asJSON)
        }
    }

    private func show(_ content: PageContent?, in layers: [PageLayer]) {
        guard !asJSON else {
            let record: Value = ["layers": layers.record, "content": content?.value ?? .null]
            return console.print(record.json)
        }
        console.print(console.outputStyle(layers.isEmpty ? "No page is open." : "[\(layers.path.printable)]", .dim))
        guard let content else { return }
        console.print(content.title.printable)
        if !content.summary.isEmpty { console.print(content.summary.printable) }
        for line in content.lines { console.print("  " + line.printable) }
    }
}

extension [PageLayer] {
    /// The types of the open pages, such as `Basket > Article | Help`: `>` precedes a pushed page, `|` a presented
    /// layer.
    fileprivate var path: String {
        map { $0.pages.map(\.type).joined(separator: " > ") }.joined(separator: " | ")
    }

    fileprivate var record: Value {
        .list(
            map { layer in
                [
                    "stack": .bool(layer.isStack),
                    "pages": .list(
                        layer.pages.map { ["type": .string($0.type), "module": .string($0.module)] }),
                ]
            })
    }
}
