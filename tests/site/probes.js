/* Questions that a test asks of a page: an object of functions, each of which returns plain data.
   `checks.py` and `levels.py` evaluate one at a time, so that no page ever holds a name of ours. */
({
  ...(() => {
    const UNREAD = 'script,style,template,noscript';
    const CODE = `${UNREAD},pre,code,kbd,samp,textarea,annotation,annotation-xml`;
    const BLOCKS =
      'p,li,td,th,dt,dd,h1,h2,h3,h4,h5,h6,figcaption,caption,summary,blockquote,text,label,a,div,' +
      'section,article,details,body';

    const TEXTS = 'p,li,dd,dt,td,th,figcaption,caption';

    const shown = (el) =>
      el.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: false });

    const name = (el) => {
      const id = el.id ? `#${el.id}` : '';
      const classes = [...el.classList].slice(0, 2).map((c) => `.${c}`).join('');
      return el.tagName.toLowerCase() + id + classes;
    };

    const where = (el) => {
      const parents = [];
      for (let up = el; up && up !== document.body && parents.length < 3; up = up.parentElement) {
        parents.unshift(name(up));
        if (up.id) break;
      }
      return parents.join(' > ');
    };

    const brief = (text) => text.trim().replace(/\s+/g, ' ').slice(0, 80);

    function* textNodes(root, skip) {
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        if (!node.data.trim() || node.parentElement.closest(skip)) continue;
        if (shown(node.parentElement)) yield node;
      }
    }

    const main = () => document.querySelector('main, [role=main]') ?? document.body;

    /* Text of each block, so that TeX which Markdown has cut up with <em> is still seen. */
    const texts = () => {
      const groups = new Map();
      for (const node of textNodes(document.body, `${CODE},math`)) {
        const block = node.parentElement.closest(BLOCKS) ?? document.body;
        groups.set(block, (groups.get(block) ?? '') + node.data);
      }
      const leaves = [...textNodes(document.body, CODE)].filter((n) => n.parentElement.closest('math'));
      return [...groups, ...leaves.map((n) => [n.parentElement, n.data])];
    };

    const referenced = (el, attribute) =>
      (el.getAttribute(attribute) ?? '').split(/\s+/).filter(Boolean)
        .map((id) => document.getElementById(id)?.textContent.trim() ?? '').join(' ').trim();

    const accessibleName = (el) =>
      referenced(el, 'aria-labelledby') || (el.getAttribute('aria-label') ?? '').trim() ||
      (el.querySelector(':scope > title')?.textContent ?? '').trim();

    const LEVELS = ['layman', 'basic', 'intermediate', 'advanced'];
    const levelOf = (el) => LEVELS.filter((level) => el.classList.contains(`level-${level}`));
    const levelBlocks = () => [...document.querySelectorAll('details[class*="level-"]')];

    /* What a reader sees of an element and its two nearest parents; focus must change some of it. */
    const look = (el) => {
      const seen = [];
      for (let up = el, n = 0; up && n < 3; up = up.parentElement, n += 1) {
        const s = getComputedStyle(up);
        const outline = s.outlineStyle === 'none' || s.outlineWidth === '0px'
          ? 'none' : `${s.outlineStyle} ${s.outlineWidth} ${s.outlineColor}`;
        seen.push([outline, s.boxShadow, s.backgroundColor, s.borderColor, s.borderWidth].join('|'));
      }
      return seen.join(' / ');
    };

    const stops = () => [
      ...document.querySelectorAll('#level :checked'),
      ...levelBlocks().map((d) => d.querySelector(':scope > summary')).filter(Boolean),
    ];
    const stopName = (el) => (el.closest('#level') ? '#level' : `summary of #${el.parentElement.id}`);

    /* Why an element is not where a reader would see it at once, or nothing. */
    const stands = (id) => {
      let seen = document.getElementById(id);
      while (!shown(seen)) seen = seen.parentElement.closest('details');
      const { top } = seen.getBoundingClientRect();
      const end = Math.ceil(scrollY + innerHeight) >= document.scrollingElement.scrollHeight - 1;
      if (top >= -2 && top < innerHeight * (end ? 1 : 0.6)) return '';
      return `#${id} is at ${Math.round(top)} px of a window ${innerHeight} px high`;
    };

    /* What is printed in a block, in order: words, marks and formulas, with the boxes of their first and last letters. */
    const printed = (block) => {
      const pieces = [];
      const letter = (text, at) => {
        const range = document.createRange();
        range.setStart(text, at);
        range.setEnd(text, at + 1);
        return range.getBoundingClientRect();
      };
      const walk = (node) => {
        for (const child of node.childNodes) {
          if (child.nodeType === 3) {
            for (const { 0: word, index } of child.data.matchAll(/[^\s\u2060]+/g)) {
              const [first, last] = [index, index + word.length - 1].map((at) => letter(child, at));
              pieces.push({ first, last, word, mark: node.matches('a.claim') });
            }
          } else if (child.nodeName.toLowerCase() === 'math') {
            const box = child.getBoundingClientRect();
            pieces.push({ first: box, last: box, word: child.textContent });
          } else if (child.nodeType === 1 && !child.matches('p,li,dd,div,details,ul,ol,dl,table,pre,figure,svg,sup')) {
            walk(child);
          }
        }
      };
      walk(block);
      return pieces.filter(({ first }) => first.height);
    };

    const scrollers = () => [...main().querySelectorAll('*')].filter((el) =>
      el.scrollWidth > el.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(el).overflowX) && shown(el));

    return {
      /* Marks, and punctuation, that begin a line, cut off from their word. */
      cutOff: () =>
        [...main().querySelectorAll('p,li,td,dd,figcaption')].filter(shown).flatMap((block) => {
          const pieces = printed(block);
          const edge = Math.min(...pieces.map(({ first }) => first.left)) + 1;
          return pieces.flatMap(({ first, word, mark }, i) => {
            const before = pieces[i - 1];
            const begins = before && first.left < before.last.left && first.top > before.last.top + before.last.height / 2;
            /* What fills a line by itself leaves no room for what follows it. */
            const unit = before && (/^[.,;:!?)]+$/.test(before.word) ? pieces[i - 2] : before);
            const loose = begins && unit?.first.left > edge && (/^[.,;:!?)\]”’]/.test(word) || (mark && !before.mark));
            return loose ? [`${where(block)}: "${brief(before.word)}" | "${brief(word)}"`] : [];
          });
        }),

      /* Permalinks on a line of their own. */
      loosePermalinks: () =>
        [...main().querySelectorAll('.headerlink')].filter((a) => a.checkVisibility()).flatMap((link) => {
          const words = document.createRange();
          words.selectNodeContents(link.parentElement);
          words.setEndBefore(link);
          const bottom = Math.max(...[...words.getClientRects()].map((box) => box.bottom));
          return link.getBoundingClientRect().top > bottom - 4 ? [`${where(link)} "${brief(link.parentElement.textContent)}"`] : [];
        }),

      /* Summaries whose arrow lies on their words. */
      coveredSummaries: () =>
        [...main().querySelectorAll('summary')].filter(shown).flatMap((summary) => {
          const arrow = getComputedStyle(summary, '::after');
          if (arrow.position !== 'absolute') return [];
          const box = summary.getBoundingClientRect();
          const [left, top] = [box.left + parseFloat(arrow.left), box.top + parseFloat(arrow.top)];
          const [right, bottom] = [left + parseFloat(arrow.width), top + parseFloat(arrow.height)];
          const words = document.createRange();
          words.selectNodeContents(summary);
          return [...words.getClientRects()].some((r) =>
            r.left < right - 1 && r.right > left + 1 && r.top < bottom - 1 && r.bottom > top + 1)
            ? [`${where(summary)} "${brief(summary.textContent)}"`] : [];
        }),

      /* Listings of at most eighty columns that have to be scrolled. */
      cutListings: () =>
        scrollers().filter((el) => el.matches('pre, pre > code'))
          .filter((el) => Math.max(...el.textContent.split('\n').map((line) => line.length)) <= 80)
          .map((el) => `${where(el)} is ${el.scrollWidth} px wide in ${el.clientWidth}`),

      /* Copy buttons on the first line of code. */
      coveredListings: () =>
        [...main().querySelectorAll('pre > nav + code')].filter(shown).flatMap((code) => {
          const style = getComputedStyle(code);
          const line = code.getBoundingClientRect().top + parseFloat(style.paddingTop) + parseFloat(style.fontSize) / 4;
          const { bottom } = code.previousElementSibling.getBoundingClientRect();
          return bottom > line ? [`${where(code)} by ${Math.round(bottom - line)} px`] : [];
        }),

      /* What scrolls sideways and does not show it. */
      unmarkedScrollers: () =>
        scrollers().filter((el) => getComputedStyle(el).maskImage === 'none').map(where),

      /* Paragraphs, captions and cells that are narrower than 10em and whose words are more than three times as high as
         that is wide. Words that only screen readers see are clipped. */
      squeezed: () =>
        [...main().querySelectorAll(TEXTS)].filter(shown).flatMap((block) => {
          const style = getComputedStyle(block);
          const width = block.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
          if (width >= 10 * parseFloat(style.fontSize) || style.clipPath !== 'none' || block.querySelector(TEXTS)) return [];
          const words = document.createRange();
          words.selectNodeContents(block);
          const { height } = words.getBoundingClientRect();
          return height > 3 * width
            ? [`${where(block)} is ${Math.round(width)} px wide and ${Math.round(height)} px high`] : [];
        }),

      /* Copy buttons that a rule for other buttons has reached. */
      framedButtons: () =>
        [...main().querySelectorAll('.md-code__button')].filter(shown)
          .filter((button) => getComputedStyle(button).borderStyle !== 'none').map(where),

      /* Text of figures and diagrams that is smaller than this many pixels. */
      smallText: (least) =>
        [...main().querySelectorAll('svg:is(.figure, .diagram *) text')].filter(shown).flatMap((text) => {
          const drawn = [...text.querySelectorAll('tspan')].filter((part) => !part.querySelector('tspan'));
          const size = Math.min(...[...drawn, text].map((part) => parseFloat(getComputedStyle(part).fontSize)));
          const pixels = size * text.closest('svg').getScreenCTM().a;
          return !text.textContent.trim() || pixels > least - 0.05 ? []
            : [`${pixels.toFixed(1)} px at ${where(text)} "${brief(text.textContent)}"`];
        }),

      /* Diagrams and formulas that have to be scrolled sideways. */
      wide: () =>
        scrollers().filter((el) => el.matches('.diagram, .formula'))
          .map((el) => `${where(el)} "${brief(el.textContent)}" is ${el.scrollWidth} px wide in ${el.clientWidth}`),

      /* Diagrams whose first box is not wholly in sight. */
      hiddenRoots: () =>
        [...main().querySelectorAll('.diagram')].filter(shown).flatMap((diagram) => {
          const led = [...diagram.querySelectorAll('.flowchart-link')].map((link) => link.id.split('_').at(-2));
          const nodes = [...diagram.querySelectorAll('.node')];
          const root = nodes.find((node) => !led.includes(node.id.split('-').at(-2)));
          if (!root) return [];
          const [box, inside] = [diagram.getBoundingClientRect(), root.getBoundingClientRect()];
          return inside.left < box.left - 1 || inside.right > box.right + 1
            ? [`${where(root)} "${brief(root.textContent)}"`] : [];
        }),

      /* The segments of the control: their words, how much of these is cut off, and their size. */
      segments: () =>
        [...document.querySelectorAll('#level label')].map((label) => {
          const { width, height, right } = label.getBoundingClientRect();
          const cut = Math.max(label.scrollWidth - label.clientWidth, Math.ceil(right) - innerWidth);
          return { words: label.innerText.replaceAll('\u00ad', '').trim(), cut, width, height };
        }),

      /* Whether a button that floats over the page lies on its text. */
      covered() {
        const box = document.querySelector('article').getBoundingClientRect();
        const over = [...document.querySelectorAll('button, a')].filter((el) =>
          getComputedStyle(el).position === 'fixed' && shown(el));
        return over.filter((el) => {
          const r = el.getBoundingClientRect();
          return r.left < box.right && r.right > box.left && r.top < box.bottom && r.bottom > box.top;
        }).map((el) => `${where(el)} lies on the article`);
      },

      /* What axe finds in a part of the page (see checks.py), by all rules unless some are named. */
      async violations(part, rules) {
        const article = document.querySelector('article');
        const beside = [...document.body.querySelectorAll('*')].filter((el) =>
          el.parentElement.contains(article) && !el.contains(article) && !article.contains(el));
        const contexts = {
          page: document,
          article: { exclude: beside },
        };
        const runOnly = rules ? { runOnly: rules } : {};
        return (await axe.run(contexts[part], { resultTypes: ['violations'], ...runOnly })).violations;
      },

      elements: () => document.querySelectorAll('*').length,

      background: () => getComputedStyle(document.body).backgroundColor,

      openAll: () => document.querySelectorAll('details').forEach((d) => { d.open = true; }),

      async scrollToEnd() {
        const root = document.scrollingElement;
        for (let y = 0, n = 0; y < root.scrollHeight && n < 200; y += innerHeight, n += 1) {
          scrollTo({ top: y, behavior: 'instant' });
          await new Promise((done) => setTimeout(done, 20));
        }
        scrollTo({ top: 0, behavior: 'instant' });
      },

      overflow(width) {
        const root = document.scrollingElement ?? document.documentElement;
        const scrollsOrCuts = (el) => {
          for (let up = el.parentElement; up && up !== document.body; up = up.parentElement) {
            const flow = getComputedStyle(up).overflowX;
            if (/auto|scroll/.test(flow)) return 'scrolls';
            if (/hidden|clip/.test(flow) && up.getBoundingClientRect().width > 1) return 'cuts';
          }
          return null;
        };
        const holdsContent = (el) =>
          /^(img|svg|math|table|iframe|video|canvas)$/i.test(el.tagName) ||
          [...el.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
        const out = (el) => {
          const box = el.getBoundingClientRect();
          return box.width > 1 && box.height > 1 && box.right > width + 1;
        };
        const stray = [...main().querySelectorAll('*')]
          .filter((el) => !el.closest('svg *, math *') && shown(el) && holdsContent(el) && out(el));
        /* A permalink is seen while its heading is pointed at, and stands behind the last word, wherever that ends. */
        const permalinks = [...main().querySelectorAll('.headerlink')].filter((link) =>
          link.checkVisibility() && link.parentElement.getBoundingClientRect().right + link.getBoundingClientRect().width +
            parseFloat(getComputedStyle(link).marginLeft) > width + 1);
        const page = [...stray, ...permalinks].filter((el) => scrollsOrCuts(el) === null);
        const article = main().querySelector('article') ?? main();
        const cut = stray.filter((el) => article.contains(el) && scrollsOrCuts(el) === 'cuts');
        return {
          extra: Math.max(0, root.scrollWidth - width),
          stray: page.slice(0, 4).map((el) => `${where(el)} ends at ${Math.round(el.getBoundingClientRect().right)} px`),
          cut: cut.slice(0, 4).map((el) => `${where(el)} "${brief(el.textContent)}"`),
        };
      },

      rawTex() {
        const patterns = [
          /\\[([]/, /\$\$/, /\\[a-zA-Z]{2,}/, /\$(?=[^\s$])[^$\n]{0,200}?[^\s$\\]\$(?!\d)/,
        ];
        return texts().flatMap(([el, text]) => {
          const hit = patterns.map((p) => text.match(p)).find(Boolean);
          return hit ? [`${where(el)}: "${brief(text.slice(Math.max(0, hit.index - 10)))}"`] : [];
        });
      },

      leftovers: () =>
        [...document.querySelectorAll(
          '.arithmatex, pre.mermaid, .mermaid:not(svg), code.language-mermaid, code.language-math, ' +
          'merror, mjx-merror, .katex-error, canvas',
        )].map((el) => `${where(el)} "${brief(el.textContent)}"`),

      unnamedPictures() {
        const problems = [];
        for (const img of document.querySelectorAll('img')) {
          const decorative = ['presentation', 'none'].includes(img.getAttribute('role')) || img.ariaHidden === 'true';
          if (!img.hasAttribute('alt')) problems.push(`${where(img)} ${img.getAttribute('src')?.slice(0, 60)}: no alt`);
          else if (!img.alt.trim() && !decorative && main().contains(img)) {
            problems.push(`${where(img)} ${img.getAttribute('src')?.slice(0, 60)}: empty alt`);
          }
        }
        for (const svg of document.querySelectorAll('figure svg, .diagram svg')) {
          if (svg.parentElement.closest('svg, button, a, summary, .twemoji, .md-icon')) continue;
          const role = svg.getAttribute('role') ?? '';
          if (!/^(img|graphics-document( document)?)$/.test(role)) problems.push(`${where(svg)}: role="${role}"`);
          if (!accessibleName(svg)) problems.push(`${where(svg)}: no accessible name`);
        }
        return problems;
      },

      brokenImages: () =>
        [...document.querySelectorAll('img')].filter((i) => i.complete && i.naturalWidth === 0 && shown(i))
          .map((i) => `${where(i)} ${i.getAttribute('src')?.slice(0, 60)}`),

      policy: () => document.querySelector('head > meta[http-equiv=Content-Security-Policy]')?.content ?? '',

      structure() {
        const ids = [...document.querySelectorAll('[id]')].map((el) => el.id);
        const counts = ids.reduce((all, id) => all.set(id, (all.get(id) ?? 0) + 1), new Map());
        return {
          lang: document.documentElement.lang,
          duplicates: [...counts].filter(([, n]) => n > 1).map(([id, n]) => `#${id} (${n} times)`),
          headings: [...document.querySelectorAll('h1,h2,h3,h4,h5,h6')]
            .map((h) => [Number(h.tagName[1]), brief(h.textContent)]),
        };
      },

      /* Words a reader sees in the main part. Controls are left out: scripts may add a copy button, and give live
         figures theirs. */
      words: () =>
        [...textNodes(main(), `${UNREAD},.live,.ask,button,select,[role=button],[role=tooltip]`)]
          .flatMap((node) => node.data.match(/[\p{L}\p{N}]+/gu) ?? []),

      pictures: () => Object.fromEntries(['img', 'svg', 'math', 'figure', 'table', 'pre']
        .map((tag) => [tag, [...main().querySelectorAll(`${tag}:not(.live *)`)].filter((el) => shown(el)).length])),

      detailsState: () => [...document.querySelectorAll('details')].map((d) => d.open),

      closedDetails: () =>
        [...document.querySelectorAll('details')].flatMap((d, i) =>
          (!d.open && shown(d.querySelector(':scope > summary') ?? d) ? [[i, where(d)]] : [])),

      /* Open details of which something below the summary cannot be seen. */
      hiddenInDetails: () =>
        [...document.querySelectorAll('details[open]')].flatMap((d) => {
          if (d.parentElement.closest('nav, [hidden], dialog')) return [];
          const nodes = [...d.children].filter((c) => c.tagName !== 'SUMMARY' && c.textContent.trim());
          const box = (el) => el.getBoundingClientRect();
          const seen = (el) => shown(el) && box(el).width > 0 && box(el).height > 0;
          const hidden = nodes.filter((c) => !seen(c) && !c.matches('.md-clipboard *, details.code:not([open])'));
          return hidden.length ? [`${where(d)}: "${brief(hidden[0].textContent)}"`] : [];
        }),

      foldedCode: () =>
        [...document.querySelectorAll('details.code:not([open], :has(.test))')].filter(shown).map(where),

      /* Text of the main part that is paler on white than large text may be; white itself stands on a shape. */
      paleOnWhite() {
        const channel = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
        const contrast = (color) => {
          const [r, g, b, alpha = 1] = color.match(/[\d.]+/g).map(Number);
          const [x, y, z] = [r, g, b].map((value) => channel((value * alpha) / 255 + 1 - alpha));
          return 1.05 / (0.2126 * x + 0.7152 * y + 0.0722 * z + 0.05);
        };
        const pale = new Set();
        for (const { parentElement: el } of textNodes(main(), UNREAD)) {
          const style = getComputedStyle(el);
          const color = el.closest('svg') ? style.fill : style.color;
          if (contrast(color) < 3 && color !== 'rgb(255, 255, 255)') pale.add(el);
        }
        return [...pale].slice(0, 6).map((el) => `${where(el)} "${brief(el.textContent)}"`);
      },

      levels: () => levelBlocks().map((d) => ({
        id: d.id,
        levels: levelOf(d),
        open: d.open,
        summary: brief(d.querySelector(':scope > summary')?.textContent ?? ''),
      })),

      control() {
        const group = document.getElementById('level');
        if (!group) return null;
        const choices = [...group.querySelectorAll('input[type=radio]')];
        return {
          tag: group.tagName.toLowerCase(),
          name: group.querySelector(':scope > legend')?.textContent.trim() ?? '',
          options: choices.map((choice) => choice.value),
          value: choices.find((choice) => choice.checked)?.value,
          shown: shown(group) && group.getBoundingClientRect().width > 1,
        };
      },

      /* How far the page has jumped by itself since it began to load. */
      shift() {
        const observer = new PerformanceObserver(() => {});
        observer.observe({ type: 'layout-shift', buffered: true });
        return observer.takeRecords().reduce((sum, { value }) => sum + value, 0);
      },

      firstHeading: () => main().querySelector(':is(h2, h3)[id]').id,

      /* The last heading of the page that no choice of a depth but plain words hides. */
      lastHeading: () =>
        [...main().querySelectorAll(':is(h2, h3)[id]')].filter((el) => !el.closest('details:not(.from-basic)')).at(-1)?.id ?? null,

      storage: () => Object.entries(localStorage),

      /* Targets inside closed blocks: a level's block itself, the last thing in it with an id, and in a fold of what is deeper. */
      deepTargets(level) {
        const block = document.querySelector(`details.level-${level}[id]:not([open])`);
        if (!block) return [];
        const last = (part) =>
          [...document.querySelectorAll(`${part} [id]`)].filter((el) => !el.closest('svg *, summary')).slice(-1);
        return [block, ...last(`#${block.id}`), ...last(`details.from-${level}:not([open])`)].map((el) => el.id);
      },

      addLink(id) {
        const link = document.createElement('a');
        link.href = `#${id}`;
        link.id = 'link-under-test';
        link.textContent = 'link under test';
        main().prepend(link);
      },

      reached(id) {
        const el = document.getElementById(id);
        if (!el) return `no element #${id}`;
        for (let d = el.closest('details'); d; d = d.parentElement.closest('details')) {
          if (!d.open) return `${where(d)} is closed`;
        }
        return stands(id);
      },

      stands,

      marked(word) {
        const marks = [...document.querySelectorAll('mark')]
          .filter((m) => m.textContent.toLowerCase().includes(word));
        if (!marks.length) return 'no <mark> with the word';
        const lost = marks.filter((m) => !shown(m));
        return lost.length ? `${where(lost[0])} is not visible` : '';
      },

      /* A hit lands on a heading, so the word itself may be lower down; its block must be in sight. */
      outOfSight(word) {
        const found = [...textNodes(main(), UNREAD)].filter((n) => n.data.toLowerCase().includes(word));
        if (!found.length) return 'the word is not visible';
        const boxes = found.map((n) => (n.parentElement.closest('details') ?? n.parentElement).getBoundingClientRect());
        if (boxes.some((box) => box.bottom > 0 && box.top < innerHeight)) return '';
        return `its block is at ${Math.round(boxes[0].top)} px of a window ${innerHeight} px high`;
      },

      /* Go to the end of a block, so that its summary is out of sight. */
      async readInside(id) {
        document.getElementById(id).lastElementChild.scrollIntoView({ block: 'end', behavior: 'instant' });
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        return document.getElementById(id).getBoundingClientRect().top < 0;
      },

      /* How many words of the page's own text are seen, and how many of these are the lede's or the level's in plain words. */
      plainWords: () =>
        [...textNodes(document.querySelector('article'), UNREAD)].reduce(([all, plain], node) => {
          const count = node.data.match(/[\p{L}\p{N}]+/gu)?.length ?? 0;
          return [all + count, plain + (node.parentElement.closest('.lede, .level-layman') ? count : 0)];
        }, [0, 0]),

      /* Where the lede begins, in heights of the window. */
      storyStart: () => document.querySelector('.lede')?.getBoundingClientRect().top / innerHeight,

      /* Go to where a heading is read: in the upper half of the window. */
      async readAt(id) {
        scrollBy({ top: document.getElementById(id).getBoundingClientRect().top - innerHeight / 3, behavior: 'instant' });
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      },

      topOf: (id) => document.getElementById(id).getBoundingClientRect().top,

      looks: () => stops().filter(shown).map((el) => [stopName(el), look(el)]),

      focused() {
        const el = document.activeElement;
        return stops().includes(el) ? [stopName(el), look(el)] : null;
      },

      focusSummary(id) {
        document.getElementById(id).querySelector(':scope > summary').focus();
      },

      isOpen: (id) => document.getElementById(id).open,
    };
  })(),
})
