import Foundation
import PluginABI
import PluginGateway
import PluginHost
import Testing

/// The page in a browser. One test, since a browser takes a while to start.
@Suite struct PageBrowserTests {
    /// In CI, it is an error if there is no browser.
    private static var isSkipped: Bool {
        let environment = ProcessInfo.processInfo.environment
        return environment["GATEWAY_SKIPS_BROWSER"] != nil || !Browser.isInstalled && environment["CI"] == nil
    }

    @Test(.disabled(if: isSkipped, "Debian's packages chromium and chromium-driver are not installed."))
    func `the page in a browser`() async throws {
        let browser = try await Browser()
        do {
            try await Visit(browser: browser).all()
        } catch {
            Issue.record(error)
        }
        await browser.end()
    }
}

extension Visit {
    func all() async throws {
        let gateway = try await gateway()
        let port = gateway.port
        try await browser.show(width: 1600, height: 1000, isDark: false)
        try await open(port)
        try await dropsAFile(gateway)
        try await isOperatedByKeyboard()
        try await keepsForms(gateway)
        try await showsHostileTexts()
        try await followsACrash()
        try await retriesAFailure()
        try await rollsBack(gateway)
        try await showsStreams()
        try await takesFurtherParameters()
        try await showsChanges()
        try await explainsAURL()
        try await showsAFleet(gateway)
        try await isAccessible()
        try await takesPictures(gateway)
        #expect(try await browser.errors().filter { !$0.contains("status of") } == [])
        try await survivesARestart(gateway, port)
        try await triesNow(port)
        try await isHidden()
        try await asksForAToken()
        try await staysFluent()
    }

    func gateway(port: Int = 0) async throws -> TestGateway {
        let modules = [
            try labModule.build(), try PageModules.hostile.build(), try late.build(),
            try PageModules.crashing.build(), try PageModules.live.build(),
        ]
        return try await TestGateway(modules, port: port) { configuration, host in
            configuration.page = .changes
            configuration.heartbeat = .milliseconds(500)
            host.isolation.modules = .named(["Crashing"])
            host.isolation.workerPath = "\(buildFolder)/pluginhost-gateway"
            host.isolation.rules = [IsolationRule("Crashing")]
        }
    }

    // MARK: The visit

    func dropsAFile(_ gateway: TestGateway) async throws {
        try await becomes("\(text("#connection")) === 'Connected'")
        try await becomes("\(state("Lab")) === 'active'")
        #expect(try await browser.run("return \(state("ModuleC"))") == "")
        try copyFile(TestGateway.samples[2], to: "\(gateway.plugins)/dropped.so")
        try await becomes("\(state("ModuleC")) === 'active'")
        try await becomes("\(text("#event-list")).includes('added ModuleC')")
        try await choose("ModuleC")
        try await openForm("C/add")
        try await send("C/add", ["40", "2"])
        try await becomes("\(answer("C/add")).endsWith('42')")
        let commands = "details[data-action=\"C/add\"] .commands"
        let curl =
            "curl -H 'Content-Type: application/json' -d '{\"a\": 40, \"b\": 2}' "
            + "http://127.0.0.1:\(gateway.port)/call/C/add"
        #expect(try await browser.run("return \(text("\(commands) pre"))").string == curl)
        try await becomes("\(text(commands)).includes('pluginhost call C add a=40 b=2')")
        let result = try await Program.run(["sh", "-c", curl.replacingOccurrences(of: "curl ", with: "curl -s ")])
        #expect(result.output == "42")
        try await send("C/add", ["x", ""])
        try await becomes("\(answer("C/add")).includes('whole number')")
        // An action that is not remote has no form, and the page says why.
        try await choose("Lab")
        try await becomes("\(text("#details .local")).includes('not remote')")
        try await openForm("Lab/echo")
        try await send("Lab/echo", [#"{"quote": "it's", "big": 9007199254740993}"#])
        try await becomes("\(answer("Lab/echo")).includes('9007199254740993')")
        let quoted = #"'value={"quote": "it'\\''s", "big": 9007199254740993}'"#
        try await becomes("\(text("details[data-action=\"Lab/echo\"] .commands")).includes(`\(quoted)`)")
        try await openForm("Lab/fail")
        try await send("Lab/fail", [])
        try await becomes("\(answer("Lab/fail")).includes('422 outOfStock: No more.')")
        // The plots move.
        for plot in ["#details td .rate", "#details td .latency", "#summary .rate", "#summary .latency"] {
            let lines = "[...document.querySelectorAll('\(plot) polyline')]"
            try await becomes("\(lines).some(l => (l.getAttribute('points') ?? '').length > 10)")
        }
    }

    func isOperatedByKeyboard() async throws {
        try await browser.run("document.getElementById('module-filter').focus()")
        try await browser.type("Hosti")
        try await becomes("document.querySelectorAll('#module-list tbody tr').length === 1")
        try await browser.type(Browser.tab + Browser.tab + Browser.enter)
        try await becomes("\(text("#details-title")) === 'Hostile'")
        try await becomes("getComputedStyle(document.activeElement).outlineStyle !== 'none'")
        try await browser.run(
            "const f = document.getElementById('module-filter'); f.value = ''; f.dispatchEvent(new Event('input'));")
        try await becomes("document.querySelectorAll('#module-list tbody tr').length > 3")
    }

    /// A form stays as it is while the module is replaced.
    func keepsForms(_ gateway: TestGateway) async throws {
        let input = "document.querySelector('details[data-action=\"Lab/number\"] .field input')"
        try await choose("Lab")
        try await openForm("Lab/number")
        try await browser.run("\(input).value = '42'; \(input).focus(); window.kept = \(input)")
        var next = labModule
        next.version = "2.0.0"
        try next.build(into: gateway.plugins, as: "0.so")
        try await becomes("\(text("#details .facts")).includes('2.0.0')")
        try await becomes("[...document.querySelectorAll('#details button')].some(b => b.textContent === 'Roll back…')")
        let isKept = "return \(input) === window.kept && document.activeElement === window.kept && window.kept.value"
        #expect(try await browser.run(isKept) == "42")
    }

    func showsHostileTexts() async throws {
        try await choose("Hostile")
        try await openForm("Hostile/run")
        try await becomes("\(text("#details")).includes('<img src=x onerror=')")
        try await send("Hostile/run", [])
        try await becomes("\(answer("Hostile/run")).includes('<script>window.hacked')")
        try await becomes("\(text("#details")).includes('\\\\u{202E}')")
        try await becomes("!\(text("#details")).includes('\\u202e')")
        #expect(try await browser.run("return window.hacked ?? 'no'") == "no")
        #expect(try await browser.run("return document.querySelectorAll('main img, main script').length") == 0)
        // A megabyte is cut off.
        try await openForm("Hostile/long")
        try await send("Hostile/long", [])
        let long = "details[data-action=\"Hostile/long\"] .answer"
        try await becomes("!!document.querySelector(`\(long) button.more`)")
        #expect(try await browser.run("return \(text(long)).length < 12000") == true)
        try await browser.run("document.querySelector(`\(long) button.more`).click()")
        try await becomes("\(text(long)).length > 150000 && \(text(long)).length < 250000")
        let hasFocus = "return document.querySelector(`\(long)`).contains(document.activeElement)"
        #expect(try await browser.run(hasFocus) == true)
    }

    func followsACrash() async throws {
        try await choose("Crashing")
        try await becomes("\(text("#details .facts")).includes('Process')")
        try await openForm("Crashing/crash")
        try await send("Crashing/crash", [])
        try await becomes("\(answer("Crashing/crash")).includes('502')")
        try await becomes("\(text("#event-list")).includes('crashed Crashing')")
        try await becomes("\(text("#event-list")).includes('restarted Crashing')")
        try await becomes("\(text("#details .facts")).includes('Restarts1')")
        // The form is still there, with its answer.
        try await becomes("\(answer("Crashing/crash")).includes('502')")
    }

    func retriesAFailure() async throws {
        try await choose("Late")
        #expect(try await browser.run("return \(state("Late"))") == "failed")
        try await becomes("\(text("#details .facts")).includes('It is not there.')")
        #expect(FileManager.default.createFile(atPath: needed, contents: nil))
        try await press("Retry…")
        try await becomes("\(text("#dialog-content")).includes('loads Late again')")
        // While the change runs, Escape does not close the dialog.
        try await browser.run(slowRetry)
        try await browser.type("\u{E00C}")
        let isRunning = "document.querySelector('dialog').open && document.getElementById('dialog-cancel').disabled"
        #expect(try await browser.run("return \(isRunning)") == true)
        try await browser.run("window.goOn()")
        try await becomes("\(state("Late")) === 'active' && !document.querySelector('dialog').open")
        #expect(try await browser.run("return document.querySelector('dialog').open") == false)
    }

    func rollsBack(_ gateway: TestGateway) async throws {
        var next = late
        next.version = "2.0.0"
        try next.build(into: gateway.plugins, as: "2.so")
        try await becomes("\(text("#details .facts")).includes('2.0.0')")
        try await press("Roll back…")
        try await becomes("\(text("#dialog-content")).includes('replaces Late 2.0.0 with 1.0.0')")
        try await browser.type("\u{E00C}")  // Escape
        try await becomes("!document.querySelector('dialog').open")
        #expect(try await gateway.state(of: "Late")?["version"] == "2.0.0")
        try await press("Roll back…")
        try await becomes("!document.getElementById('dialog-do').disabled")
        // Meanwhile, the file is removed in another way.
        try FileManager.default.removeItem(atPath: "\(gateway.plugins)/2.so")
        #expect(await becomesTrue { try await gateway.state(of: "Late") == nil })
        try await browser.run("document.getElementById('dialog-do').click()")
        try await becomes("\(text("#dialog-content")).includes('changed in the meantime')")
        try await becomes("!document.getElementById('dialog-do').disabled")
        try await browser.run("document.getElementById('dialog-do').click()")
        try await becomes("\(state("Late")) === 'active' && !document.querySelector('dialog').open")
    }

    func explainsAURL() async throws {
        try await browser.run("document.getElementById('routes').scrollIntoView()")
        try await becomes("\(text("#route-list")).includes('https://*/shop/:id')")
        try await browser.run(
            """
            document.getElementById('url').value = 'https://a.example/shop/7';
            document.getElementById('resolve-form').requestSubmit();
            """)
        try await becomes("\(text("#resolve-answer")).includes('Lab/item')")
        for hint in ["is started", "Nothing is called"] {
            try await browser.run("document.getElementById('local').click()")
            try await becomes("\(text("#resolve-hint")).includes('\(hint)')")
        }
    }

    /// Every control has a name, and the parts of the page are landmarks, in the tree that screen readers read.
    func isAccessible() async throws {
        let nodes = try await browser.develop("Accessibility.getFullAXTree")["nodes"]?.list ?? []
        let shown = nodes.filter { $0["ignored"] == false }
        func role(_ node: Value) -> String { node["role"]?["value"]?.string ?? "" }
        for landmark in ["banner", "navigation", "main"] {
            #expect(shown.contains { role($0) == landmark }, "\(landmark)")
        }
        let controls = [
            "button", "textbox", "searchbox", "combobox", "checkbox", "link", "region", "table", "dialog", "log",
        ]
        for node in shown where controls.contains(role(node)) {
            #expect(node["name"]?["value"]?.string?.isEmpty == false, "\(node.json)")
        }
        // No level of headings is skipped, so that screen readers can list them as an outline.
        let levels =
            try await browser.run(
                """
                return [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].filter(h => h.checkVisibility())
                    .map(h => Number(h.localName[1]))
                """
            ).list?.compactMap(\.int) ?? []
        #expect(levels.first == 1 && levels.count { $0 == 1 } == 1 && levels.count > 8)
        for (before, level) in zip(levels, levels.dropFirst()) { #expect(level <= before + 1, "\(levels)") }
        // Each id names one element, and each reference leads to one.
        let broken = try await browser.run(
            """
            const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
            const twice = ids.filter((id, place) => ids.indexOf(id) !== place);
            const names = ['for', 'aria-labelledby', 'aria-describedby'];
            const lost = names.flatMap(name => [...document.querySelectorAll(`[${name}]`)]
                .filter(e => !document.getElementById(e.getAttribute(name))).map(e => e.outerHTML.slice(0, 200)));
            return [...twice, ...lost]
            """)
        #expect(broken == [])
    }

    func takesPictures(_ gateway: TestGateway) async throws {
        guard let folder = ProcessInfo.processInfo.environment["GATEWAY_SCREENSHOTS"] else { return }
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try await choose("ModuleC")
        try await openForm("C/add")
        try await send("C/add", ["40", "2"])
        try await browser.run("document.activeElement.blur()")
        for second in 1...12 {
            for number in 0..<(10 * second) { _ = try await gateway.call("C/add", "{\"a\": \(number)}") }
            try await Task.sleep(for: .milliseconds(800))
        }
        for (width, height) in [(360, 800), (800, 900), (1600, 1000)] {
            for isDark in [false, true] {
                try await browser.show(width: width, height: height, isDark: isDark)
                try await browser.run("scrollTo(0, 0)")
                // Nothing is wider than the screen.
                let overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
                #expect(try await browser.run(overflow) == 0, "\(width)")
                let name = "\(folder)/page-\(width)-\(isDark ? "dark" : "light").png"
                try await browser.picture().write(to: URL(filePath: name))
            }
        }
        try await browser.show(width: 1600, height: 1000, isDark: false)
    }
}
