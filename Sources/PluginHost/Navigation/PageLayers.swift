import PluginABI

// What opening and closing do to the layers of a navigator, as a value: nothing has happened yet when it is an error.

extension [PageLayer] {
    /// The page that is seen.
    var top: OpenPage? { last?.pages.last }

    /// The layers with one more page.
    func opening(_ page: OpenPage, by transition: Transition) throws(PluginError) -> [PageLayer] {
        guard !contains(where: { $0.pages.contains(page) }) else {
            throw PluginError(
                .pageOpen, "The \(page.type) of \(page.module) is open already; it cannot be opened twice.")
        }
        var layers = self
        switch transition {
        case .push:
            try checkStack()
            layers[layers.count - 1].pages.append(page)
        case .present: layers.append(PageLayer(isStack: false, pages: [page]))
        case .presentInNewStack: layers.append(PageLayer(isStack: true, pages: [page]))
        case .none: break
        }
        return layers
    }

    /// - Throws: `noStack` where nothing can be pushed.
    func checkStack() throws(PluginError) {
        guard last?.isStack != true else { return }
        let present = top.map { "The \($0.type) of \($0.module) is presented alone" } ?? "No page is open"
        throw PluginError(
            .noStack, "\(present): there is no stack to push onto. Open the page in a new stack.")
    }

    /// How many pages are above one, whatever their layers.
    ///
    /// - Throws: `pageNotOpen`.
    func pages(above object: Object) throws(PluginError) -> Int {
        let pages = flatMap(\.pages)
        guard let place = pages.firstIndex(where: { $0.object == object }) else {
            throw PluginError(
                .pageNotOpen, "The page is not open here: it was closed before, or is none of this navigator's.")
        }
        return pages.count - place - 1
    }

    /// How many pages to close for so many pages of the topmost stack.
    ///
    /// - Throws: `nothingToClose` when there are not so many above the first one.
    func popping(_ count: Int) throws(PluginError) -> Int {
        let above = Swift.max(0, (last?.pages.count ?? 0) - 1)
        guard count > 0, count <= above else {
            throw PluginError(
                .nothingToClose,
                isEmpty
                    ? "No page is open."
                    : "Of the \(count) to pop, \(above) can be popped: the first page of a stack, and one that is presented alone, "
                        + "are dismissed.")
        }
        return count
    }

    /// How many pages to close for so many of the topmost layers.
    ///
    /// - Throws: `nothingToClose` when there are not so many.
    func dismissing(_ count: Int) throws(PluginError) -> Int {
        guard count > 0, count <= self.count else {
            throw PluginError(
                .nothingToClose, isEmpty ? "No page is open." : "Of the \(count) to dismiss, \(self.count) are there.")
        }
        return suffix(count).reduce(0) { $0 + $1.pages.count }
    }

    /// Takes so many pages away from the top, and with its last page a layer. Returns them innermost first.
    mutating func close(_ count: Int) -> [OpenPage] {
        var closed: [OpenPage] = []
        while closed.count < count, let page = self[self.count - 1].pages.popLast() {
            closed.append(page)
            if self[self.count - 1].pages.isEmpty { removeLast() }
        }
        return closed
    }
}
