import Foundation
import PluginABI
import PluginGateway
import PluginHost
import Testing

// Streams, changes, and large numbers on the page.
extension Visit {
    /// The elements of a cursor, and the calls of a callback, are shown as they arrive.
    func showsStreams() async throws {
        try await choose("Lab")
        try await openForm("Lab/slowCursor")
        let file = "\(folder)/cursor"
        try await send("Lab/slowCursor", [file])
        let cursor = "details[data-action=\"Lab/slowCursor\"] .answer"
        try await becomes("\(text("\(cursor) .stream li")) === '1' && \(text(cursor)).includes('1 elements so far')")
        #expect(FileManager.default.createFile(atPath: file, contents: nil))
        try await becomes("\(text(cursor)).includes('1 elements') && !\(text(cursor)).includes('so far')")
        try await choose("Live")
        try await openForm("Live/watch")
        let other = "\(folder)/watch"
        try await send("Live/watch", ["progress", other])
        let events = "details[data-action=\"Live/watch\"] .answer"
        let lines = "[...document.querySelectorAll(`\(events) .stream li`)].map(l => l.textContent).join('|')"
        try await becomes("\(lines) === 'progress []'")
        #expect(FileManager.default.createFile(atPath: other, contents: nil))
        try await becomes("\(lines) === 'progress []|progress []|result \"over\"'")
        let commands = text("details[data-action=\"Live/watch\"] .commands")
        try await becomes("\(commands).includes('curl -N ') && \(commands).includes('takes a callback')")
        // Many elements: the last ones are shown.
        try await choose("Lab")
        try await openForm("Lab/cursor")
        try await send("Lab/cursor", ["1234"])
        let many = "details[data-action=\"Lab/cursor\"] .answer"
        try await becomes("\(text(many)).includes('the last 500 of 1,234 elements')")
        #expect(try await browser.run("return document.querySelectorAll(`\(many) .stream li`).length") == 500)
        // “Stop” ends a stream, and the elements that have arrived remain.
        try await openForm("Lab/slowCursor")
        try await send("Lab/slowCursor", ["\(folder)/never"])
        try await becomes("\(text("\(cursor) .stream li")) === '1'")
        try await browser.run(
            "document.querySelectorAll('details[data-action=\"Lab/slowCursor\"] form .buttons button')[1].click()")
        try await becomes("\(text(cursor)).includes('Stopped') && \(text("\(cursor) .stream li")) === '1'")
        #expect(FileManager.default.createFile(atPath: "\(folder)/never", contents: nil))
    }

    /// Parameters that an action does not declare are entered in a separate field.
    func takesFurtherParameters() async throws {
        try await choose("Live")
        try await openForm("Live/take")
        let answer = answer("Live/take")
        try await send("Live/take", ["x", #"{"big": 9007199254740993, "word": "it's"}"#])
        try await becomes("\(answer).includes('9007199254740993')")
        let commands = text("details[data-action=\"Live/take\"] .commands")
        try await becomes("\(commands).includes(`{\"id\": \"x\", \"big\": 9007199254740993, \"word\": `)")
        try await send("Live/take", ["x", #"{"id": 1}"#])
        try await becomes("\(answer).includes('id has a field of its own')")
        try await send("Live/take", ["x", "[1]"])
        try await becomes("\(answer).includes('must be a JSON object')")
        let input = "document.querySelectorAll('details[data-action=\"Live/take\"] textarea')[1]"
        #expect(try await browser.run("return document.activeElement === \(input)") == true)
        try await send("Live/take", ["x", ""])
        try await becomes("\(answer).includes('\"x\"')")
    }

    /// The page shows who changed what, including refused changes, and the focus stays on the button.
    func showsChanges() async throws {
        let list = text("#change-list")
        try await becomes("\(list).includes('retried Late') && !document.getElementById('changes').hidden")
        try await becomes("\(list).includes('rolled back Late') && \(list).includes('conflict')")
        try await becomes("\(list).includes('127.0.0.1')")
        try await choose("Crashing")
        try await browser.run(
            "[...document.querySelectorAll('#details button')].find(b => b.textContent === 'Restart…').focus()")
        try await browser.type(Browser.enter)
        try await becomes("document.querySelector('dialog').open")
        try await browser.type("\u{E00C}")  // Escape
        try await becomes("!document.querySelector('dialog').open")
        try await becomes("document.activeElement.textContent === 'Restart…'")
        // The same holds after the change, when the buttons have been made again.
        try await browser.type(Browser.enter)
        try await becomes("!document.getElementById('dialog-do').disabled")
        try await browser.run("document.getElementById('dialog-do').click()")
        try await becomes("\(list).includes('retried Crashing') && \(state("Crashing")) === 'active'")
        try await becomes("document.activeElement.textContent === 'Restart…'")
    }

    /// A thousand modules, ten thousand routes, and figures that change. The answers of the gateway are made up.
    func staysFluent() async throws {
        let gateway = try await TestGateway([])
        let script = try await browser.develop(
            "Page.addScriptToEvaluateOnNewDocument", ["source": .string(manyModules)])
        try await open(gateway.port)
        try await becomes("document.querySelectorAll('#module-list tbody tr').length === 50")
        let paint = try await browser.run("return window.firstList").double ?? .infinity
        try await browser.run("document.getElementById('routes').scrollIntoView()")
        try await becomes("document.querySelectorAll('#route-list tbody tr').length === 50")
        try await becomes("\(text("#route-list .count")).includes('10,000')")
        try await browser.run(
            "const f = document.getElementById('route-filter'); f.value = '99'; f.dispatchEvent(new Event('input'));")
        try await becomes("\(text("#route-list .count")).includes('that match')")
        try await becomes("window.answers > 4")
        let tasks = try await browser.run("return window.longTasks.map(Math.round)").list?.compactMap(\.int) ?? []
        print("1,000 modules and 10,000 routes: the list after \(Int(paint)) ms, tasks of \(tasks) ms")
        // The bounds allow for a machine under load; on an idle one, the page needs less than 1,000 ms and 100 ms.
        #expect(paint < 5000)
        #expect(tasks.allSatisfy { $0 < 1000 })
        // On the last page, the focus moves to “Previous”.
        let pager = "document.querySelectorAll('#module-list .pager button')"
        try await browser.run("\(pager)[1].focus(); for (let i = 0; i < 19; i++) \(pager)[1].click()")
        #expect(try await browser.run("return document.activeElement === \(pager)[0]") == true)
        try await browser.develop("Page.removeScriptToEvaluateOnNewDocument", script)
        try await gateway.end()
    }
}
