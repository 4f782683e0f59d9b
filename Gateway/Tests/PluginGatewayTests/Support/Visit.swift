import Foundation
import PluginABI
import Testing

/// What a person does on the page.
struct Visit {
    let browser: Browser
    let folder: String
    /// A file that the module `Late` needs.
    var needed: String { "\(folder)/needed" }
    var late: CModule { PageModules.late(needing: needed) }
    static let token = "0123456789abcdef"

    init(browser: Browser) throws {
        (self.browser, folder) = (browser, try makeFolder())
    }

    func open(_ port: Int, _ address: String = "") async throws {
        try await browser.open("about:blank")
        try await browser.open("http://127.0.0.1:\(port)/\(address)")
    }

    /// Waits until a JavaScript expression is true.
    func becomes(
        _ expression: String, _ location: SourceLocation = #_sourceLocation
    ) async throws {
        var last: Value = .null
        let holds = await becomesTrue {
            last = try await browser.run("return \(expression)")
            return last == true
        }
        guard holds else {
            let text = try await browser.run("return document.body.innerText.slice(0, 3000)").string ?? ""
            Issue.record("\(expression) is \(last.json). The page:\n\(text)", sourceLocation: location)
            throw Browser.Failure(description: "\(expression) does not become true.")
        }
    }

    func text(_ selector: String) -> String { "(document.querySelector(`\(selector)`)?.textContent ?? '')" }

    func choose(_ module: String) async throws {
        let row = "[...document.querySelectorAll('#module-list button.name')].find(b => b.textContent === '\(module)')"
        try await becomes("!!\(row)")
        try await browser.run("\(row).click()")
        try await becomes("\(text("#details-title")) === '\(module)'")
    }

    /// Opens the form of an action.
    func openForm(_ action: String) async throws {
        let details = "document.querySelector('details[data-action=\"\(action)\"]')"
        try await becomes("!!\(details)")
        try await browser.run("\(details).open = true")
        try await becomes("!!\(details).querySelector('form')")
    }

    /// Fills in the fields of a form, and sends it.
    func send(_ action: String, _ values: [String]) async throws {
        try await browser.run(sendForm(action), .list(values.map(Value.string)))
    }

    func answer(_ action: String) -> String { text("details[data-action=\"\(action)\"] .answer") }

    func press(_ label: String) async throws {
        let button = "[...document.querySelectorAll('#details button')].find(b => b.textContent === '\(label)')"
        try await becomes("!!\(button)")
        try await browser.run("\(button).click()")
        try await becomes("document.querySelector('dialog').open")
    }

    func state(_ module: String) -> String {
        "([...document.querySelectorAll('#module-list tr')].find(r => r.querySelector('button.name')?.textContent === "
            + "'\(module)')?.querySelector('.badge')?.textContent ?? '')"
    }
}
