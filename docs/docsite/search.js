// The search of the documentation site: a task finds the page of the task first, and a pasted error finds the page of errors.
// tools/docs_site.py writes the titles of the sidebar in the place of TITLES.
(() => {
  if (typeof Search === "undefined") return;
  const SIDEBAR = TITLES;
  const ERRORS = "troubleshooting";
  const LONG = 6; // words of a query that is a pasted error
  let words = [];

  const files = (word) =>
    [Search._index.terms, Search._index.titleterms].flatMap((index) =>
      Object.hasOwn(index, word) ? index[word] : []);

  // A pasted error contains names of a site, which no page has: only the words that the page of errors contains are searched for.
  const found = (searched) => {
    const errors = Search._index.docnames.indexOf(ERRORS);
    const kept = searched.filter((word) => files(word).includes(errors));
    return kept.length >= searched.length / 3 ? kept : searched;
  };

  const parse = Search._parseQuery;
  Search._parseQuery = (query) => {
    const [text, searched, excluded, highlighted, objects] = parse(query);
    words = [...searched];
    const kept = words.length < LONG ? words : found(words);
    return [text, new Set(kept), excluded, highlighted, objects];
  };

  const stemmer = new Stemmer();
  const stems = (text) => new Set(splitQuery(text.toLowerCase()).map((word) => stemmer.stemWord(word)));

  // The share of the words of the query in the title of a page counts most, then pages before the reference of plugins.
  Scorer.score = ([page, title, anchor, _description, score]) => {
    if (words.length >= LONG) return score + (page === ERRORS ? 1000 : 0);
    const titles = stems(`${title} ${SIDEBAR[page] || ""}`);
    const share = words.filter((word) => titles.has(word)).length / Math.max(words.length, 1);
    return score + 100 * share + (page in SIDEBAR ? 20 : 0) - (page.startsWith("collection/") ? 10 : 0) - (anchor ? 5 : 0);
  };
})();
