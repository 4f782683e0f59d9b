import PluginABI

// The effect of opening and closing pages on a navigator's layers. These functions work on values, so an error leaves the
// navigator unchanged.

extension [PageLayer] {
    /// The visible page.
    var top: OpenPage? { last?.pages.last }

    /// Returns the layers with one more page.
    func opening(_ page: OpenPage, by transition: Transition) throws(PluginError) -> [PageLayer] {
        try checkClosed(page.object, page.type, of: page.module)
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

    /// - Throws: `pageOpen` if the object is an open page.
    func checkClosed(_ object: Object, _ type: String, of module: String) throws(PluginError) {
        guard !contains(where: { $0.pages.contains { $0.object == object } }) else {
            throw PluginError(.pageOpen, "The page \(type) of \(module) is already open; it cannot be opened twice.")
        }
    }

    /// - Throws: `noStack` if no page can be pushed.
    func checkStack() throws(PluginError) {
        guard last?.isStack != true else { return }
        let present = top.map { "The page \($0.type) of \($0.module) is presented alone" } ?? "No page is open"
        throw PluginError(
            .noStack, "\(present): there is no stack to push onto. Open the page in a new stack.")
    }

    /// Returns how many pages are above a page, in all layers.
    ///
    /// - Throws: `pageNotOpen`.
    func pages(above object: Object) throws(PluginError) -> Int {
        let pages = flatMap(\.pages)
        guard let index = pages.firstIndex(where: { $0.object == object }) else {
            throw PluginError(
                .pageNotOpen, "The page is not open: it was closed before, or belongs to another navigator.")
        }
        return pages.count - index - 1
    }

    /// Returns how many pages to close in order to pop `count` pages of the topmost stack.
    ///
    /// - Throws: `nothingToClose` if there are fewer than `count` pages above the first one.
    func popping(_ count: Int) throws(PluginError) -> Int {
        let above = Swift.max(0, (last?.pages.count ?? 0) - 1)
        guard count > 0, count <= above else {
            throw PluginError(
                .nothingToClose,
                isEmpty
                    ? "No page is open."
                    : "Of the \(count) pages to pop, only \(above) can be popped. Use dismiss for the first page of a stack, "
                        + "and for a page that is presented alone.")
        }
        return count
    }

    /// Returns how many pages to close in order to dismiss the `count` topmost layers.
    ///
    /// - Throws: `nothingToClose` if there are fewer than `count` layers.
    func dismissing(_ count: Int) throws(PluginError) -> Int {
        guard count > 0, count <= self.count else {
            throw PluginError(
                .nothingToClose,
                isEmpty ? "No page is open." : "Of the \(count) layers to dismiss, only \(self.count) are open.")
        }
        return suffix(count).reduce(0) { $0 + $1.pages.count }
    }

    /// Removes `count` pages from the top, and each layer with its last page. Returns the pages, topmost first.
    mutating func close(_ count: Int) -> [OpenPage] {
        var closed: [OpenPage] = []
        while closed.count < count, let page = self[self.count - 1].pages.popLast() {
            closed.append(page)
            if self[self.count - 1].pages.isEmpty { removeLast() }
        }
        return closed
    }
}
