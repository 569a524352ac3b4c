// The documentation as a site: README.md and docs/ as they are. `make docs` builds it from copies in pages/, from which Node.js finds its modules.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { slug } from 'github-slugger'
import { defineConfig } from 'vitepress'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const source = 'https://github.com/tandem-addons/tandem/blob/main/'

// The pages of docs/, in the order in which a reader needs them. The generated reference and the decisions are listed by file name.
const groups = {
  'Start': ['tutorial', 'kind', 'charts-tutorial', 'day-two-tutorial', 'concepts'],
  'Run a fleet': ['operations', 'versions', 'dependencies', 'stacks', 'gitops', 'dashboard', 'cli', 'troubleshooting', 'alerts', 'security', 'scale', 'reliability', 'beyond-one-hub'],
  'Write packages': ['authors', 'package-reference', 'charts', 'publishing', 'package-sources', 'kudo'],
  'Contribute': ['development', 'upstream'],
}

const title = page => readFileSync(path.join(root, page), 'utf8').match(/^# (.+)$/m)[1].replaceAll('`', '')
const pages = folder => readdirSync(path.join(root, folder)).filter(name => name.endsWith('.md')).sort().map(name => `${folder}/${name}`)
const address = page => '/' + page.replace(/(^|\/)README\.md$/, '$1').replace(/\.md$/, '')
const items = names => names.map(page => ({ text: title(page), link: address(page) }))

const listed = Object.values(groups).flat().map(name => `docs/${name}.md`)
const missing = pages('docs').filter(page => !listed.includes(page))
if (missing.length > 0) {
  throw new Error(`no group of ${fileURLToPath(import.meta.url)} has ${missing.join(', ')}`)
}

const isPage = file => file === 'README.md' || (file.startsWith('docs/') && file.endsWith('.md'))

// Links to files that are not on the site lead to the repository, and those to folders to their README.md.
function rewriteLinks(md) {
  md.core.ruler.push('repository-links', state => {
    const folder = path.dirname(state.env.relativePath ?? '')
    for (const token of state.tokens.flatMap(token => token.children ?? [])) {
      const [href, anchor] = (token.attrGet('href') ?? '').split('#')
      if (token.type !== 'link_open' || href === '' || /^([a-z]+:|\/)/.test(href)) continue
      const file = path.normalize(path.join(folder, href)).replace(/\/$/, '')
      const target = existsSync(path.join(root, file, 'README.md')) ? path.join(file, 'README.md') : file
      const hash = anchor === undefined ? '' : `#${anchor}`
      token.attrSet('href', isPage(target) ? address(target) + hash : source + file + hash)
    }
  })
}

// VitePress compiles pages as Vue templates, in which two braces begin an expression.
function escapeBraces(md) {
  for (const rule of ['text', 'code_inline']) {
    const render = md.renderer.rules[rule]
    md.renderer.rules[rule] = (...args) => render(...args).replaceAll('{{', '&#123;&#123;')
  }
}

export default defineConfig({
  title: 'Tandem',
  description: 'Add-ons for fleets of Kubernetes clusters',
  base: process.env.DOCS_BASE ?? '/',
  srcDir: 'pages',
  rewrites: page => page.replace(/(^|\/)README\.md$/, '$1index.md'),
  outDir: path.join(root, 'bin/docs'),
  cleanUrls: true,
  markdown: { anchor: { slugify: slug }, config: md => md.use(rewriteLinks).use(escapeBraces) },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [{ text: 'Tutorial', link: '/docs/tutorial' }, { text: 'Reference', link: '/docs/reference/' }, { text: 'Source', link: source }],
    sidebar: [
      { text: 'Tandem', link: '/' },
      ...Object.entries(groups).map(([text, names]) => ({ text, items: items(names.map(name => `docs/${name}.md`)) })),
      { text: 'Commands', collapsed: true, items: items(pages('docs/reference')) },
      { text: 'Decisions', collapsed: true, items: items(pages('docs/decisions')) },
    ],
  },
})
