# What stands in the tests' Redmine. Run by up.sh: rails runner seed.rb. Facts for the tests go to $FACTS.
require 'digest'
require 'json'

abort 'only for an instance of the tests' if [nil, '', 'default'].include?(ENV['REDMINE_INSTANCE'])

Redmine::DefaultData::Loader.load('en') if Redmine::DefaultData::Loader.no_data?
{
  'rest_api_enabled' => '1', 'login_required' => '0', 'default_language' => 'en', 'notified_events' => [],
  'text_formatting' => ENV.fetch('FORMATTING'), 'gravatar_enabled' => '0', 'cross_project_issue_relations' => '1',
  'host_name' => "127.0.0.1:#{ENV.fetch('PORT')}", 'default_users_time_zone' => ''
}.each { |name, value| Setting[name] = value }

key = ->(login) { Digest::SHA1.hexdigest("a key for tests: #{login}") }
person = lambda do |login, admin: false, zone: nil, **more|
  user = User.new(login: login, firstname: login.capitalize, lastname: 'Tester', mail: "#{login}@example.test")
  user.assign_attributes(admin: admin, language: 'en', mail_notification: 'none', **more)
  user.password = user.password_confirmation = "password of #{login}"
  user.save!
  user.pref.update!(time_zone: zone) if zone
  user.pref.update!(comments_sorting: 'desc') if login == 'bot3' # its journals come in reverse
  token = Token.create!(user: user, action: 'api')
  token.update_column(:value, key[login]) # creating one replaces any value that is given
  user
end
bots = %w[bot bot2 bot3] # the third sorts its journals in reverse
people = {
  'admin' => { admin: true }, 'dana' => { zone: 'Tokyo' }, 'devi' => { zone: 'Hawaii' }, 'rea' => {}, 'otto' => {},
  'quiet' => {}, 'locked' => { status: User::STATUS_LOCKED }
}
User.find_by_login('admin')&.update_columns(login: 'founder')
users = people.to_h { |login, about| [login, person[login, **about]] }
                .merge(bots.to_h { |login| [login, person[login]] })

status = ['New', 'In Progress', 'Resolved', 'Feedback', 'Closed', 'Rejected', 'Code Review'].to_h do |name|
  [name, IssueStatus.find_by_name(name) || IssueStatus.create!(name: name)]
end
trackers = %w[Bug Feature].map { |name| Tracker.find_by_name!(name) }

rights = %i[view_issues add_issues edit_issues add_issue_notes view_private_notes manage_issue_relations]
role = lambda do |name, permissions, moves|
  made = Role.create!(name: name, assignable: true, issues_visibility: 'all', users_visibility: 'all',
                      permissions: permissions)
  moves.each do |old, new|
    trackers.each do |tracker|
      WorkflowTransition.create!(tracker: tracker, role: made, old_status_id: old ? status[old].id : 0,
                                 new_status: status[new], author: false, assignee: false)
    end
  end
  made
end
# No way to Closed or Rejected: what the bot asks for against its workflow is ignored by Redmine, without a word.
bot_moves = [[nil, 'New'], ['New', 'In Progress'], ['In Progress', 'Resolved'], ['In Progress', 'New'],
             ['In Progress', 'Code Review'], ['Code Review', 'In Progress'], ['Resolved', 'In Progress']]
bot_role = role['Bot', rights + [:set_notes_private], bot_moves]
quiet_role = role['Bot without private notes', rights, bot_moves]
every = status.keys.product(status.keys).reject { |old, new| old == new } + [[nil, 'New']]
developer = role['Dev', rights + %i[set_notes_private manage_categories], every]
reporter = role['Rep', %i[view_issues add_issues add_issue_notes], [[nil, 'New']]]
manager = role['Lead', rights + %i[edit_project manage_members set_notes_private], every]

field = lambda do |name, format|
  IssueCustomField.create!(name: name, field_format: format, is_for_all: true, tracker_ids: trackers.map(&:id))
end
run_field = field['Run', 'link']
field['Branch', 'string']

project = lambda do |identifier, open|
  made = Project.create!(identifier: identifier, name: identifier.capitalize, is_public: open,
                         enabled_module_names: %w[issue_tracking], trackers: trackers)
  made.issue_custom_fields = IssueCustomField.all.to_a
  made
end
demo, secret = project['demo', true], project['secret', false]
member = ->(where, who, as) { Member.create!(project: where, principal: users.fetch(who), roles: [as]) }
bots.each { |login| member[demo, login, bot_role] }
{ 'quiet' => quiet_role, 'dana' => developer, 'devi' => developer, 'rea' => reporter, 'admin' => manager }
  .each { |login, as| member[demo, login, as] }
member[secret, 'dana', developer]

category = IssueCategory.create!(project: demo, name: 'backend')
User.current = users['dana']
hidden = Issue.create!(project: secret, tracker: trackers[0], author: users['dana'], status: status['New'],
                       priority: IssuePriority.default, subject: 'A secret')

File.write(ENV.fetch('FACTS'), JSON.pretty_generate(
  version: Redmine::VERSION.to_s, url: "http://127.0.0.1:#{ENV.fetch('PORT')}",
  keys: users.keys.to_h { |login| [login, key[login]] }, users: users.transform_values(&:id),
  statuses: status.transform_values(&:id), trackers: trackers.to_h { |one| [one.name, one.id] },
  projects: { demo: demo.id, secret: secret.id }, categories: { category.name => category.id },
  priorities: IssuePriority.active.to_h { |one| [one.name, one.id] }, hidden: hidden.id, run_field: run_field.id
))
