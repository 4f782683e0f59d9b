internal import PluginABI
internal import PluginHost

/// Shows pages on a terminal: what lies over what, and the content of the page that is seen.
struct TerminalPresenter: Presenter {
    let console: Console
    let asJSON: Bool

    /// A page whose content cannot be shown is not opened.
    func opened(_ page: OpenPage, by transition: Transition, in layers: [PageLayer]) async throws {
        show(try await page.content(), in: layers)
    }

    func closed(_ pages: [OpenPage], in layers: [PageLayer]) async { await show(layers) }

    /// Shows the page that is seen, as it is now.
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
    /// `Basket > Article | Help`: what was pushed, and what was presented in front of it.
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
